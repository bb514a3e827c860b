// When something that waits is expected to start: relative, with the exact times on hover.
import css from "./start-times.module.css";
import { Time } from "./parts";

interface Props {
  /** Seconds since 1970; missing if nobody can tell. */
  p50: number | null | undefined;
  p90: number | null | undefined;
}

export function StartTimes({ p50, p90 }: Props) {
  if (p50 == null) return null;
  return (
    <dl class={css.times}>
      <div>
        <dt>Starts about</dt>
        <dd>
          <Time at={p50 * 1000} />
        </dd>
      </div>
      {p90 != null && (
        <div>
          <dt>Very likely by</dt>
          <dd>
            <Time at={p90 * 1000} />
          </dd>
        </div>
      )}
    </dl>
  );
}
