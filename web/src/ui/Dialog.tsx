import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { Button } from "./Button";
import { focusMainLater } from "./focus";
import { texts } from "../texts";

export interface DialogProps {
	title: string;
	/** Called when the dialog is to be closed; absent: only what is in it closes it. */
	onClose?: () => void;
	wide?: boolean;
	children: ComponentChildren;
	/** Its buttons. */
	actions?: ComponentChildren;
	/** Called when the form in it is sent, by a button or by Enter. */
	onSubmit?: () => void;
}

const firstField = ".body :is(input:not([type=radio]), input:checked, select, textarea):enabled";

/** A modal dialog. It begins with the focus on its first field. The browser keeps the focus in it, and gives it back afterwards. */
export function Dialog({ title, onClose, wide, children, actions, onSubmit }: DialogProps) {
	const dialog = useRef<HTMLDialogElement>(null);
	const id = useId();
	useEffect(() => {
		const element = dialog.current;
		const before = document.activeElement;
		element?.showModal();
		element?.querySelector<HTMLElement>(firstField)?.focus(); // the browser would take the button that closes it
		return () => {
			element?.close();
			if (before instanceof HTMLElement && before.isConnected && before !== document.body) before.focus();
			else focusMainLater();
		};
	}, []);
	return (
		<dialog
			ref={dialog}
			class={wide ? "wide" : undefined}
			aria-labelledby={id}
			onCancel={(e) => {
				e.preventDefault();
				onClose?.();
			}}
			onKeyDown={(e) => e.key === "Escape" && !onClose && e.preventDefault()}
		>
			<form
				method="dialog"
				onSubmit={(e) => {
					e.preventDefault();
					onSubmit?.();
				}}
			>
				<header>
					<h2 id={id}>{title}</h2>
					{onClose && <Button kind="quiet" icon="close" label={texts.common.close} onClick={onClose} />}
				</header>
				<div class="body">{children}</div>
				{actions && <footer>{actions}</footer>}
			</form>
		</dialog>
	);
}
