import type { ButtonHTMLAttributes, ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { isAbort, messageOf } from "../core/http";
import { Icon, type IconName } from "./icons";
import { toast } from "./toast";

export interface ButtonProps extends Omit<ButtonHTMLAttributes<HTMLButtonElement>, "onClick" | "title"> {
	/** What it does. If it returns a promise, the button is busy until that ends, and a failure is shown as a message. */
	onClick?: (event: MouseEvent) => unknown;
	kind?: "primary" | "danger" | "quiet";
	icon?: IconName;
	/** Its name, if it shows an icon alone. */
	label?: string;
	/** Why it can't be used now. It stays reachable by the keyboard, so that everybody can learn the reason. */
	disabledFor?: string | null;
	small?: boolean;
	type?: "button" | "submit";
	children?: ComponentChildren;
}

export function Button({ onClick, kind, icon, label, disabledFor, small, type = "button", children, class: extra, "aria-label": spoken, ...rest }: ButtonProps) {
	const name = label ?? spoken;
	const [isBusy, setBusy] = useState(false);
	const click = (event: MouseEvent) => {
		if (disabledFor || isBusy) return event.preventDefault();
		const result = onClick?.(event);
		if (!(result instanceof Promise)) return;
		setBusy(true);
		result.catch((error) => !isAbort(error) && toast(messageOf(error), "error")).finally(() => setBusy(false));
	};
	const classes = ["button", kind, small && "small", !children && "icon-only", extra].filter(Boolean).join(" ");
	return (
		<button
			{...rest}
			type={type}
			class={classes}
			onClick={click}
			aria-label={name && disabledFor ? `${name}. ${disabledFor}` : name}
			title={disabledFor || (children ? undefined : label)}
			aria-disabled={disabledFor ? "true" : undefined}
			aria-busy={isBusy ? "true" : undefined}
		>
			{icon && <Icon name={icon} />}
			{children}
		</button>
	);
}
