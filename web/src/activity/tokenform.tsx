import { useState } from "preact/hooks";
import { call, segment } from "../core/http";
import type { Scope, Token } from "../core/types";
import { Button } from "../ui/Button";
import { Dialog } from "../ui/Dialog";
import { Checkbox, Select, TextArea, TextField } from "../ui/Field";
import { Failure } from "../ui/states";

const scopes: readonly { name: Scope; hint: string }[] = [
	{ name: "models.read", hint: "list models, follow downloads" },
	{ name: "models.manage", hint: "load, unload, download and delete models" },
	{ name: "inference", hint: "ask models; its own conversations" },
	{ name: "mcp.plugin", hint: "let models use the tools of mcp.json" },
	{ name: "mcp.ephemeral", hint: "let models use tools of servers that the request names" },
	{ name: "admin", hint: "everything, also tokens, logs and everybody's usage" },
];

const usual: Scope[] = ["models.read", "models.manage", "inference", "mcp.plugin", "mcp.ephemeral"];

const limits = [
	{ name: "requests_per_minute", label: "Requests per minute" },
	{ name: "tokens_per_day", label: "Tokens per day" },
	{ name: "concurrent_requests", label: "Requests at a time" },
] as const;

type Limit = (typeof limits)[number]["name"];

interface Form {
	name: string;
	scopes: Scope[];
	models: string; // one a line
	expiry: string; // keep, never, date, or days
	date: string;
	limits: Record<Limit, string>;
}

function formOf(token: Token | null): Form {
	const typed = (n: number | undefined) => (n ? String(n) : "");
	return {
		name: token?.name ?? "",
		scopes: token ? (token.scopes as Scope[]) : usual,
		models: token?.models.join("\n") ?? "",
		expiry: token ? "keep" : "never",
		date: "",
		limits: {
			requests_per_minute: typed(token?.limits.requests_per_minute),
			tokens_per_day: typed(token?.limits.tokens_per_day),
			concurrent_requests: typed(token?.limits.concurrent_requests),
		},
	};
}

function expiryChoices(token: Token | null) {
	return [
		...(token ? [{ value: "keep", text: token.expires_at ? "As it is: " + new Date(token.expires_at).toLocaleString() : "As it is: never" }] : []),
		{ value: "never", text: "Never" },
		{ value: "1", text: "In a day" },
		{ value: "7", text: "In a week" },
		{ value: "30", text: "In 30 days" },
		{ value: "90", text: "In 90 days" },
		{ value: "365", text: "In a year" },
		{ value: "date", text: "At a date" },
	];
}

/** Returns the body of the request; the limits and the expiry have been checked. */
function bodyOf(form: Form): Record<string, unknown> {
	const body: Record<string, unknown> = {
		name: form.name.trim(),
		scopes: form.scopes,
		models: form.models
			.split(/[\n,]/)
			.map((m) => m.trim())
			.filter(Boolean),
		limits: Object.fromEntries(limits.map(({ name }) => [name, Number(form.limits[name] || 0)])),
	};
	if (form.expiry === "never") body["expires_at"] = null;
	else if (form.expiry === "date") body["expires_at"] = new Date(form.date).toISOString();
	else if (form.expiry !== "keep") body["expires_at"] = new Date(Date.now() + Number(form.expiry) * 86_400_000).toISOString();
	return body;
}

function wrong(form: Form): string | null {
	if (form.name.trim() === "") return "Give it a name.";
	if (form.scopes.length === 0) return "Choose at least one scope.";
	if (limits.some(({ name }) => limitError(form.limits[name]))) return "Correct the limits.";
	if (form.expiry === "date" && Number.isNaN(Date.parse(form.date))) return "Choose a date.";
	return null;
}

const limitError = (typed: string): string | null => (/^\d{0,12}$/.test(typed.trim()) ? null : "Enter a whole number.");

interface Props {
	token: Token | null; // null: a new one
	onClose: () => void;
	onSaved: (token: Token & { token?: string }) => void;
}

/** Creates or changes a token. */
export function TokenForm({ token, onClose, onSaved }: Props) {
	const [form, setForm] = useState(() => formOf(token));
	const [error, setError] = useState<Error | null>(null);
	const change = (changes: Partial<Form>) => setForm({ ...form, ...changes });
	const problem = wrong(form);
	const submit = async () => {
		if (problem) return;
		try {
			const path = "/api/v1/tokens";
			onSaved(
				await (token
					? call<Token>("PATCH", `${path}/${segment(token.id)}`, { body: bodyOf(form) })
					: call<Token>("POST", path, { body: bodyOf(form) })),
			);
		} catch (e) {
			setError(e as Error);
		}
	};
	return (
		<Dialog
			title={token ? `Edit ${token.name || token.id}` : "Create token"}
			wide
			onClose={onClose}
			onSubmit={() => void submit()}
			actions={
				<>
					<Button onClick={onClose}>Cancel</Button>
					<Button kind="primary" type="submit" disabledFor={problem}>
						{token ? "Save" : "Create"}
					</Button>
				</>
			}
		>
			{error && <Failure error={error} />}
			<TextField label="Name" hint="Who or what uses it, such as laptop." value={form.name} maxLength={200} onInput={(name) => change({ name })} />
			<fieldset class="choices">
				<legend>Scopes</legend>
				{scopes.map((s) => (
					<Checkbox
						key={s.name}
						label={s.name}
						hint={s.hint}
						checked={form.scopes.includes(s.name)}
						onChange={(yes) => change({ scopes: scopes.map((o) => o.name).filter((n) => (n === s.name ? yes : form.scopes.includes(n))) })}
					/>
				))}
			</fieldset>
			<TextArea
				label="Models"
				hint="Keys, one a line; * matches any characters but a slash. Empty: all models."
				rows={2}
				value={form.models}
				onInput={(models) => change({ models })}
			/>
			<div class="fields">
				{limits.map(({ name, label }) => (
					<TextField
						key={name}
						label={label}
						hint="Empty: unlimited"
						inputMode="numeric"
						value={form.limits[name]}
						error={limitError(form.limits[name])}
						onInput={(typed) => change({ limits: { ...form.limits, [name]: typed } })}
					/>
				))}
			</div>
			<div class="fields">
				<Select label="Expires" value={form.expiry} onChange={(expiry) => change({ expiry })} choices={expiryChoices(token)} />
				{form.expiry === "date" && <TextField label="Date" type="datetime-local" value={form.date} onInput={(date) => change({ date })} />}
			</div>
		</Dialog>
	);
}
