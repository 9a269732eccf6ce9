import { useState } from "preact/hooks";
import { call, segment } from "../core/http";
import type { Scope, Token } from "../core/types";
import { Button } from "../ui/Button";
import { Dialog } from "../ui/Dialog";
import { Checkbox, Select, TextArea, TextField } from "../ui/Field";
import { Failure } from "../ui/states";
import { texts } from "../texts";

const scopes: readonly { name: Scope; hint: string }[] = [
	{ name: "models.read", hint: texts.tokenForm.listModelsFollowDownloads },
	{ name: "models.manage", hint: texts.tokenForm.loadUnloadDownloadDelete },
	{ name: "inference", hint: texts.tokenForm.askModelsOwnConversations },
	{ name: "mcp.plugin", hint: texts.tokenForm.letModelsUseTools },
	{ name: "mcp.ephemeral", hint: texts.tokenForm.letModelsUseToolsServers },
	{ name: "admin", hint: texts.tokenForm.everythingAlsoTokensLogs },
];

const usual: Scope[] = ["models.read", "models.manage", "inference", "mcp.plugin", "mcp.ephemeral"];

const limits = [
	{ name: "requests_per_minute", label: texts.tokenForm.requestsPerMinute },
	{ name: "tokens_per_day", label: texts.tokenForm.tokensPerDay },
	{ name: "concurrent_requests", label: texts.common.requestsAtATime },
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
		...(token ? [{ value: "keep", text: token.expires_at ? texts.tokenForm.asItIs(new Date(token.expires_at).toLocaleString()) : texts.tokenForm.asItIsNever }] : []),
		{ value: "never", text: texts.common.never },
		{ value: "1", text: texts.tokenForm.inADay },
		{ value: "7", text: texts.tokenForm.inAWeek },
		{ value: "30", text: texts.tokenForm.in30Days },
		{ value: "90", text: texts.tokenForm.in90Days },
		{ value: "365", text: texts.tokenForm.inAYear },
		{ value: "date", text: texts.tokenForm.atADate },
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
	if (form.name.trim() === "") return texts.tokenForm.giveItAName;
	if (form.scopes.length === 0) return texts.tokenForm.chooseLeastOneScope;
	if (limits.some(({ name }) => limitError(form.limits[name]))) return texts.tokenForm.correctTheLimits;
	if (form.expiry === "date" && Number.isNaN(Date.parse(form.date))) return texts.tokenForm.chooseADate;
	return null;
}

const limitError = (typed: string): string | null => (/^\d{0,12}$/.test(typed.trim()) ? null : texts.common.enterAWholeNumber);

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
			title={token ? texts.common.editName(token.name || token.id) : texts.common.createToken}
			wide
			onClose={onClose}
			onSubmit={() => void submit()}
			actions={
				<>
					<Button onClick={onClose}>{texts.common.cancel}</Button>
					<Button kind="primary" type="submit" disabledFor={problem}>
						{token ? texts.common.save : texts.tokenForm.create}
					</Button>
				</>
			}
		>
			{error && <Failure error={error} />}
			<TextField label={texts.common.name} hint={texts.tokenForm.whoUsesSuchLaptop} value={form.name} maxLength={200} onInput={(name) => change({ name })} />
			<fieldset class="choices">
				<legend>{texts.tokenForm.scopes}</legend>
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
				label={texts.common.models}
				hint={texts.tokenForm.keysOneLineMatches}
				rows={2}
				value={form.models}
				onInput={(models) => change({ models })}
			/>
			<div class="fields">
				{limits.map(({ name, label }) => (
					<TextField
						key={name}
						label={label}
						hint={texts.tokenForm.emptyUnlimited}
						inputMode="numeric"
						value={form.limits[name]}
						error={limitError(form.limits[name])}
						onInput={(typed) => change({ limits: { ...form.limits, [name]: typed } })}
					/>
				))}
			</div>
			<div class="fields">
				<Select label={texts.common.expires} value={form.expiry} onChange={(expiry) => change({ expiry })} choices={expiryChoices(token)} />
				{form.expiry === "date" && <TextField label={texts.tokenForm.date} type="datetime-local" value={form.date} onInput={(date) => change({ date })} />}
			</div>
		</Dialog>
	);
}
