import { useRef, useState } from "preact/hooks";
import { Button } from "./Button";
import { announce, toast } from "./toast";
import { texts } from "../texts";

/** Copies a text to the clipboard. Without TLS, browsers allow that only on this machine, so there is an older way as well. */
export async function copyText(text: string): Promise<boolean> {
	try {
		await navigator.clipboard.writeText(text);
		return true;
	} catch {
		const area = document.createElement("textarea");
		area.value = text;
		area.setAttribute("aria-hidden", "true");
		area.className = "visually-hidden";
		(document.querySelector("dialog[open]") ?? document.body).append(area);
		area.select();
		const isCopied = document.execCommand("copy");
		area.remove();
		return isCopied;
	}
}

export function Copy({ text, label = texts.copying.copy, small = true, children }: { text: string | (() => string); label?: string; small?: boolean; children?: string }) {
	const [isDone, setDone] = useState(false);
	const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
	const copy = async () => {
		if (!(await copyText(typeof text === "string" ? text : text()))) return toast(texts.copying.browserAllowCopyingSelect, "error");
		announce(texts.copying.copied);
		setDone(true);
		clearTimeout(timer.current);
		timer.current = setTimeout(() => setDone(false), 1500);
	};
	return (
		<Button kind="quiet" small={small} icon={isDone ? "check" : "copy"} label={label} onClick={() => void copy()}>
			{children}
		</Button>
	);
}

/** A text to copy, such as a command. */
export function Code({ text, label, block = false }: { text: string; label: string; block?: boolean }) {
	return (
		<div class={block ? "code block" : "code"}>
			<pre tabIndex={0} role="group" aria-label={label}>
				<code>{text}</code>
			</pre>
			<Copy text={text} label={texts.copying.copyOf(label)} />
		</div>
	);
}
