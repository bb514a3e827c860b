import { render } from "preact";
import { App } from "./app";
import "./theme/tokens.css";
import { applyTheme } from "./theme/theme";

applyTheme();
const root = document.getElementById("app");
if (root) render(<App />, root);
