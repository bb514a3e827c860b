// The frame around every view: navigation, the state of the connection, keys; and the sign-in before it.
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { loadSession, session } from "./api/session";
import css from "./app.module.css";
import { keys, useKeys } from "./keys";
import { later } from "./parts/later";
import { Notices } from "./parts/notices";
import { Dialog, css as parts, Problem } from "./parts/parts";
import { useCurrentInSight } from "./parts/in-sight";
import { asApiError } from "./parts/load";
import type { ApiError } from "./api/client";
import { followLink, href, path, setQuery } from "./router";
import { chosenCluster, clusters, loadClusters } from "./store/clusters";
import { feedState, follow, hasLoaded } from "./store/workloads";
import { ICONS } from "./views/icons";
import { sections } from "./views/sections";
import { viewOf } from "./views/table";
import { SignIn } from "./views/sign-in/sign-in";

const failure = signal<ApiError | undefined>(undefined);
const isHelpOpen = signal(false);
const isPaletteOpen = signal(false);
const Palette = later(async () => (await import("./views/palette/palette")).Palette);

export function App() {
  useEffect(() => {
    loadSession().catch((error: unknown) => (failure.value = asApiError(error)));
  }, []);
  const name = session.value?.username;
  useEffect(() => {
    if (!name) return;
    follow(name);
    loadClusters().catch(() => undefined);
  }, [name]);
  if (session.value === null) return <SignIn />;
  if (session.value === undefined) return <Problem error={failure.value} />;
  return <Shell />;
}

function Shell() {
  const nav = useCurrentInSight();
  useKeys({
    showHelp: () => (isHelpOpen.value = true),
    showPalette: () => (isPaletteOpen.value = true),
  });
  const View = viewOf(path.value);
  return (
    <div class={css.shell} onClick={followLink}>
      <header class={css.header}>
        <a class={css.skip} href="#main">
          Skip to the content
        </a>
        <a class={css.brand} href={href("/")}>
          <svg viewBox="0 0 20 20" aria-hidden="true">
            <rect width="20" height="20" rx="5" />
            <path d="M5 6.5h10M5 10h6.5M5 13.5h3.5" />
          </svg>
          Fairlead
        </a>
        <button type="button" class={css.goto} onClick={() => (isPaletteOpen.value = true)}>
          Go to… <kbd>Ctrl K</kbd>
        </button>
        <ClusterChoice />
        <nav ref={nav} class={css.nav} aria-label="Views">
          {sections().map((section) => (
            <a
              key={section.path}
              href={href(section.path)}
              data-first={section.isFirst}
              aria-current={isCurrent(section.path) ? "page" : undefined}
            >
              <svg class={css.icon} viewBox="0 0 16 16" aria-hidden="true">
                <path d={ICONS[section.path]} />
              </svg>
              {section.title}
            </a>
          ))}
        </nav>
        <p class={css.account}>
          <span class={css.state} role="status" data-state={feedState.value}>
            {feedState.value === "live" ? "Live" : "Connecting…"}
          </span>
          <span class={css.user}>{session.value?.username}</span>
        </p>
      </header>
      <div class={css.body}>
        {feedState.value === "connecting" && hasLoaded.value && (
          <p class={css.lost} role="status">
            The connection to the server is lost. The page tries again by itself; what it shows may be out of date.
          </p>
        )}
        <main id="main" tabIndex={-1}>
          <View />
        </main>
      </div>
      <Notices />
      {isHelpOpen.value && <Help />}
      {isPaletteOpen.value && <Palette onClose={() => (isPaletteOpen.value = false)} />}
    </div>
  );
}

/** Narrows the views of what belongs to a cluster to one of several. */
function ClusterChoice() {
  if (clusters.value.length < 2) return null;
  return (
    <select
      class={css.cluster}
      aria-label="Cluster"
      value={chosenCluster.value?.name ?? ""}
      onChange={(event) => setQuery({ cluster: event.currentTarget.value })}
    >
      <option value="">Every cluster</option>
      {clusters.value.map((one) => (
        <option key={one.uuid} value={one.name}>
          {one.name}
          {one.status && one.status.state !== "Connected" && ` (${one.status.state.toLowerCase()})`}
        </option>
      ))}
    </select>
  );
}

function isCurrent(section: string): boolean {
  return section === "/" ? path.value === "/" : path.value.startsWith(section);
}

function Help() {
  const close = (): void => void (isHelpOpen.value = false);
  return (
    <Dialog title="Keys" onClose={close}>
      <dl class={css.keys}>
        {keys().map(([key, text]) => (
          <>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{text}</dd>
          </>
        ))}
      </dl>
      <form method="dialog" class={parts.buttons}>
        <button>Close</button>
      </form>
    </Dialog>
  );
}
