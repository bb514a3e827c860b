// Requests to the API. Paths, bodies and answers have the types of the server's own description, so a changed contract
// breaks the build here.
import type { components, paths } from "../generated/schema";

export type Schemas = components["schemas"];
type Method = "get" | "post" | "put" | "patch" | "delete";
type JsonOf<T> = T extends { content: { "application/json": infer A } } ? A : undefined;
type Success<R> = R extends { 200: infer A }
  ? JsonOf<A>
  : R extends { 201: infer A }
    ? JsonOf<A>
    : R extends { 202: infer A }
      ? JsonOf<A>
      : undefined;
type Answer<O> = O extends { responses: infer R } ? Success<R> : never;
/** The paths that have a method. */
export type PathOf<M extends Method> = {
  [P in keyof paths]: paths[P] extends Record<M, { responses: unknown }> ? P : never;
}[keyof paths];

export type Query = Record<string, string | number | boolean | undefined>;
export interface Options {
  /** Values of the variables in the path. */
  path?: Record<string, string>;
  query?: Query;
  body?: unknown;
  signal?: AbortSignal;
}

/** An error as the server words it; status 0 if the server did not answer. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly issues: Schemas["ComplianceIssue"][] = [],
  ) {
    super(message);
  }
}

let csrfToken = "";
let onSignedOut = (): void => undefined;

export function setCsrfToken(token: string): void {
  csrfToken = token;
}

/** Calls `handler` when a request is refused because nobody is signed in (any more). */
export function whenSignedOut(handler: () => void): void {
  onSignedOut = handler;
}

export function urlOf(path: string, options: Options = {}): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(options.path?.[name] ?? ""));
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(options.query ?? {})) {
    if (value !== undefined) query.set(name, String(value));
  }
  const text = query.toString();
  return text ? `${filled}?${text}` : filled;
}

/** The answer to a request; throws `ApiError` for every other status than success. */
export async function send(method: string, path: string, options: Options = {}): Promise<Response> {
  const headers: Record<string, string> = {};
  if (method !== "GET") headers["X-Fairlead-CSRF"] = csrfToken;
  if (options.body !== undefined) headers["Content-Type"] = "application/json";
  const init: RequestInit = { method, headers, credentials: "same-origin" };
  if (options.body !== undefined) init.body = JSON.stringify(options.body);
  if (options.signal) init.signal = options.signal;
  let response: Response;
  try {
    response = await fetch(urlOf(path, options), init);
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new ApiError(0, "The server does not answer. It may be restarting, or the network is down.");
  }
  if (response.ok) return response;
  if (response.status === 401) onSignedOut();
  throw await readError(response);
}

export async function readError(response: Response): Promise<ApiError> {
  try {
    const error = (await response.json()) as Schemas["SubmissionError"];
    const details = error.details ?? error.message;
    return new ApiError(response.status, details, error.complianceIssues ?? issuesIn(details));
  } catch {
    return new ApiError(response.status, `The server answered ${response.status} ${response.statusText}`);
  }
}

/** The violations in a text: operations of some kinds answer `spec.image: is missing; name: is taken` and no list. */
export function issuesIn(details: string): Schemas["ComplianceIssue"][] {
  return details.split(/; (?=[a-z]\w*(?:\[\d+\]|\.\w+)*: )/).flatMap((part) => {
    const found = /^([a-z]\w*(?:\[\d+\]|\.\w+)*): (.+)$/s.exec(part);
    return found ? [{ field: found[1] ?? "", details: found[2] ?? "" }] : [];
  });
}

async function request<M extends Method, P extends PathOf<M>>(
  method: M,
  path: P,
  options: Options = {},
): Promise<Answer<paths[P][M]>> {
  const response = await send(method.toUpperCase(), path, options);
  const text = await response.text();
  return (text ? JSON.parse(text) : undefined) as Answer<paths[P][M]>;
}

export const get = <P extends PathOf<"get">>(path: P, options?: Options) => request("get", path, options);
export const post = <P extends PathOf<"post">>(path: P, options?: Options) => request("post", path, options);
export const put = <P extends PathOf<"put">>(path: P, options?: Options) => request("put", path, options);
export const patch = <P extends PathOf<"patch">>(path: P, options?: Options) => request("patch", path, options);
export const remove = <P extends PathOf<"delete">>(path: P, options?: Options) => request("delete", path, options);

/** A WebSocket to a path of the API; the token for writes is one of its subprotocols, because it can have no headers. */
export function socketOf(path: string): WebSocket {
  return new WebSocket(new URL(path, location.href.replace(/^http/, "ws")), ["fairlead", `csrf.${csrfToken}`]);
}
