import { render } from "preact";
import { App } from "./app";
import { startEvents } from "./core/events";
import { language } from "./texts";

document.documentElement.lang = language;
history.scrollRestoration = "manual"; // a view decides where it opens
const root = document.getElementById("app");
if (root) render(<App />, root);
startEvents();
