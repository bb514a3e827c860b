import { expect, test } from "vitest";
import { programOf } from "./sessions";

test.each([
  ["Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox 140"],
  ["Mozilla/5.0 (X11) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36", "Chrome 141"],
  ["Mozilla/5.0 (X11) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36 Edg/140.0.0.0", "Edge 140"],
  ["Mozilla/5.0 (Macintosh) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.1 Safari/605.1.15", "Safari 26"],
  ["fairlead/0.2.0", "fairlead"],
  ["", "unknown program"],
])("%s is called %s", (client, want) => {
  expect(programOf(client)).toBe(want);
});
