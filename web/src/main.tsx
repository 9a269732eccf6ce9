import { render } from "preact";
import { App } from "./app";
import { startEvents } from "./core/events";

history.scrollRestoration = "manual"; // a view decides where it opens
const root = document.getElementById("app");
if (root) render(<App />, root);
startEvents();
