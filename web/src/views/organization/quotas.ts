// The GPU figures of a project or department over all node pools.
import type { Schemas } from "../../api/client";

export interface GpuFigures {
  /** Infinity without a bound. */
  quota: number;
  used: number;
  /** Asked for in addition to what is used. */
  asked: number;
  limit: number | undefined;
  /** The part of the quota that others use. */
  lent: number;
  /** Undefined if the scheduler has not told. */
  fairShare: number | undefined;
}

type Share = Schemas["GpuShareView"];

export function gpuFigures(
  owner: Schemas["ProjectView"] | Schemas["DepartmentView"],
  own: readonly Share[] = [],
): GpuFigures {
  const shares = owner.resources.map((pool) => pool.gpu);
  const deserved = shares.map((share) => (share.deserved === null || share.deserved < 0 ? Infinity : share.deserved));
  const { allocated, requested } = owner.status.quotaStatus;
  const limits = shares.map((share) => share.limit);
  const isLimited = limits.length > 0 && limits.every((limit) => limit !== null);
  return {
    quota: deserved.reduce((sum, value) => sum + value, 0),
    used: allocated.gpu,
    asked: Math.max(0, (requested?.gpu ?? 0) - allocated.gpu),
    limit: isLimited ? limits.reduce((sum, value) => sum + value, 0) : undefined,
    lent: own.reduce((sum, share) => sum + share.lent, 0),
    fairShare: own.length > 0 ? own.reduce((sum, share) => sum + share.fairShare, 0) : undefined,
  };
}

/** A quota as the API has it: -1 without a bound. */
export const quotaOf = (text: string): number => (text.trim() === "" ? -1 : Number(text));

/** A quota as a field shows it: empty without a bound. */
export const quotaText = (quota: number | null): string => (quota === null || quota < 0 ? "" : String(quota));
