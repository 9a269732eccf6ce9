import { render } from "preact";
import { App } from "./app";
import { startEvents } from "./core/events";

const root = document.getElementById("app");
if (root) render(<App />, root);
startEvents();
