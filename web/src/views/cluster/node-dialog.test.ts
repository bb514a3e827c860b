import { expect, test } from "vitest";
import { questionsAbout } from "./node-dialog";

const titles = (cordoned: boolean, draining: boolean): string[] =>
  questionsAbout({ name: "a", cordoned, draining }).flatMap((question) => (question.action ? [question.title] : []));

test("only what changes the node is offered", () => {
  expect(titles(false, false)).toEqual(["Drain it", "Cordon it"]);
  expect(titles(true, false)).toEqual(["Drain it", "Uncordon it"]);
  expect(titles(true, true)).toEqual(["Stop draining, keep it cordoned", "Uncordon it"]);
});
