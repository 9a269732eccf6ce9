import { inBrowser } from "../core/keep";
import { Store } from "../core/store";

export type Theme = "auto" | "light" | "dark";

const kept = inBrowser.get("theme");

export const theme = new Store<Theme>(kept === "light" || kept === "dark" ? kept : "auto");

function apply(chosen: Theme): void {
	if (chosen === "auto") delete document.documentElement.dataset["theme"];
	else document.documentElement.dataset["theme"] = chosen;
}

apply(theme.value);
theme.follow((chosen) => {
	inBrowser.set("theme", chosen === "auto" ? null : chosen);
	apply(chosen);
});

const next: Record<Theme, Theme> = { auto: "light", light: "dark", dark: "auto" };

export const nextTheme = (): void => theme.set(next[theme.value]);
