import type { ComponentChildren, InputHTMLAttributes, SelectHTMLAttributes, TextareaHTMLAttributes } from "preact";
import { useId } from "preact/hooks";

interface Common {
	label: string;
	hint?: ComponentChildren;
	error?: string | null;
	hideLabel?: boolean;
}

/** Frames a control with its label, hint and error, which a screen reader reads with it. */
function Frame({ label, hint, error, hideLabel, children }: Common & { children: (ids: { id: string; "aria-describedby"?: string; "aria-invalid"?: "true" }) => ComponentChildren }) {
	const id = useId();
	const described = [hint && id + "-hint", error && id + "-error"].filter(Boolean).join(" ");
	return (
		<div class="field">
			<label for={id} class={hideLabel ? "visually-hidden" : undefined}>
				{label}
			</label>
			{children({ id, "aria-describedby": described || undefined, "aria-invalid": error ? "true" : undefined })}
			{hint && (
				<div id={id + "-hint"} class="hint">
					{hint}
				</div>
			)}
			{error && (
				<div id={id + "-error"} class="error-text">
					{error}
				</div>
			)}
		</div>
	);
}

type Kept = "onInput" | "onChange" | "value" | "label" | "role" | "type" | "size" | "multiple" | "id";
type InputProps = Common & {
	value: string;
	onInput: (value: string) => void;
	type?: "text" | "password" | "search" | "number" | "date" | "datetime-local";
} & Omit<InputHTMLAttributes<HTMLInputElement>, Kept>;

export function TextField({ label, hint, error, hideLabel, value, onInput, type = "text", ...rest }: InputProps) {
	return (
		<Frame {...{ label, hint, error, hideLabel }}>
			{(ids) => {
				const attributes = { autocomplete: "off", spellcheck: false, ...rest, ...ids, type } as InputHTMLAttributes<HTMLInputElement>;
				return <input {...attributes} value={value} onInput={(e: InputEvent) => onInput((e.currentTarget as HTMLInputElement).value)} />;
			}}
		</Frame>
	);
}

export function TextArea({ label, hint, error, hideLabel, value, onInput, ...rest }: Common & { value: string; onInput: (value: string) => void } & Omit<TextareaHTMLAttributes<HTMLTextAreaElement>, Kept>) {
	return (
		<Frame {...{ label, hint, error, hideLabel }}>
			{(ids) => <textarea {...rest} {...ids} value={value} onInput={(e) => onInput(e.currentTarget.value)} />}
		</Frame>
	);
}

export interface Choice {
	value: string;
	text?: string;
	disabled?: boolean;
}

export function Select({ label, hint, error, hideLabel, value, onChange, choices, ...rest }: Common & { value: string; onChange: (value: string) => void; choices: readonly (Choice | string)[] } & Omit<SelectHTMLAttributes<HTMLSelectElement>, Kept>) {
	return (
		<Frame {...{ label, hint, error, hideLabel }}>
			{(ids) => (
				<select {...rest} {...ids} value={value} onChange={(e) => onChange(e.currentTarget.value)}>
					{choices.map((c) => {
						const { value: v, text, disabled } = typeof c === "string" ? { value: c } as Choice : c;
						return (
							<option key={v} value={v} disabled={disabled} selected={v === value}>
								{text ?? v}
							</option>
						);
					})}
				</select>
			)}
		</Frame>
	);
}

export function Checkbox({ label, hint, checked, onChange, disabled }: { label: string; hint?: string; checked: boolean; onChange: (checked: boolean) => void; disabled?: boolean }) {
	const id = useId();
	return (
		<div class="checkbox">
			<input id={id} type="checkbox" checked={checked} disabled={disabled} aria-describedby={hint ? id + "-hint" : undefined} onChange={(e) => onChange(e.currentTarget.checked)} />
			<label for={id}>{label}</label>
			{hint && (
				<span id={id + "-hint"} class="hint">
					{hint}
				</span>
			)}
		</div>
	);
}

/** A choice among a few, side by side. */
export function Segments<T extends string>({ label, value, onChange, choices }: { label: string; value: T; onChange: (value: T) => void; choices: readonly { value: T; text: string }[] }) {
	const name = useId();
	return (
		<fieldset class="segments">
			<legend class="visually-hidden">{label}</legend>
			{choices.map((c) => (
				<label key={c.value} class={c.value === value ? "chosen" : undefined}>
					<input type="radio" name={name} value={c.value} checked={c.value === value} onChange={() => onChange(c.value)} />
					<span>{c.text}</span>
				</label>
			))}
		</fieldset>
	);
}
