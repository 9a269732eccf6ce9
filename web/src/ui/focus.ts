/** Moves the focus to where one goes on: the composer of a chat, or else the title of the view. A touch screen's keyboard would hide what is there. */
export function focusMain(): void {
	const main = document.getElementById("main");
	const next = matchMedia("(pointer: coarse)").matches ? null : main?.querySelector<HTMLElement>("[data-next]");
	(next ?? main?.querySelector<HTMLElement>("h1") ?? main)?.focus({ preventScroll: true });
}

/** As {@link focusMain}, once what is being rendered is there, unless something has the focus then. */
export function focusMainLater(): void {
	requestAnimationFrame(() => {
		if (document.activeElement === document.body || document.activeElement === null) focusMain();
	});
}
