// What an address without a view shows.
import { css as parts, Empty, ViewTitle } from "../parts/parts";
import { href } from "../router";

export function NotFound() {
  return (
    <div class={parts.page}>
      <ViewTitle>Not found</ViewTitle>
      <Empty>
        There is nothing at this address. Go to the <a href={href("/")}>overview</a> or to the{" "}
        <a href={href("/workloads")}>workloads</a>.
      </Empty>
    </div>
  );
}
