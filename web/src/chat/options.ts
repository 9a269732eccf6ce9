// What a chat asks with besides the question.

import { inBrowser } from "../core/keep";
import { Store } from "../core/store";
import { texts } from "../texts";

export interface Options {
	systemPrompt: string;
	preset: string;
	reasoning: string;
	/** Numbers as they were typed; absent or empty: the server's default. */
	numbers: Partial<Record<NumberName, string>>;
	draftModel: string;
	bias: string; // JSON: tokens to numbers
	stop: string; // strings at which the answer ends, one a line
	isStored: boolean;
	/** A model may make titles of conversations. */
	hasTitles: boolean;
	/** MCP servers by label: the tools that may be used, or null for all of them. */
	servers: Record<string, string[] | null>;
	/** Each call of a tool has to be approved. */
	isAsked: boolean;
	/** The tools whose calls are always approved, as toolName names them. */
	approved: string[];
}

export interface NumberField {
	label: string;
	hint: string;
	min?: number;
	max?: number;
	isWhole?: boolean;
	isAbove?: boolean; // min itself isn't allowed
}

export const numberFields = {
	temperature: { label: texts.parameters.temperature, hint: texts.parameters.zeroToOne, min: 0, max: 1 },
	max_output_tokens: { label: texts.parameters.longestAnswer, hint: texts.parameters.inTokens, min: 1, isWhole: true },
	top_p: { label: texts.parameters.topP, hint: texts.parameters.share, min: 0, max: 1 },
	top_k: { label: texts.parameters.topK, hint: texts.parameters.zeroAllTokens, min: -1, isWhole: true },
	min_p: { label: texts.parameters.minP, hint: texts.parameters.share, min: 0, max: 1 },
	repeat_penalty: { label: texts.parameters.repeatPenalty, hint: texts.parameters.oneNone, min: 0, isAbove: true },
	presence_penalty: { label: texts.parameters.presencePenalty, hint: texts.parameters.hundreds, min: -100, max: 100 },
	frequency_penalty: { label: texts.parameters.frequencyPenalty, hint: texts.parameters.hundreds, min: -100, max: 100 },
	seed: { label: texts.parameters.seed, hint: texts.parameters.sameSeedGivesSame, isWhole: true },
	context_length: { label: texts.common.contextLength, hint: texts.parameters.tokensIfLoadsModel, min: 1, isWhole: true },
	ttl: { label: texts.common.unloadAfter, hint: texts.parameters.secondsWithoutRequestIf, min: -1, isWhole: true },
} satisfies Record<string, NumberField>;

export type NumberName = keyof typeof numberFields;

export const numberNames = Object.keys(numberFields) as NumberName[];

const defaults: Options = { systemPrompt: "", preset: "", reasoning: "", numbers: {}, draftModel: "", bias: "", stop: "", isStored: true, hasTitles: true, servers: {}, isAsked: false, approved: [] };

export const options = new Store<Options>(kept());

options.follow((o) => inBrowser.set("chat.options", JSON.stringify(o)));

function kept(): Options {
	try {
		return { ...defaults, ...(JSON.parse(inBrowser.get("chat.options") ?? "{}") as Partial<Options>) };
	} catch {
		return defaults;
	}
}

export const changeOptions = (changes: Partial<Options>): void => options.set({ ...options.value, ...changes });

export const resetOptions = (): void => options.set(defaults);

/** Returns what is wrong with a number, or an empty string. */
export function numberError(name: NumberName, typed: string): string {
	if (typed.trim() === "") return "";
	const { min, max, isWhole, isAbove }: NumberField = numberFields[name];
	const n = Number(typed);
	if (!Number.isFinite(n)) return texts.parameters.enterANumber;
	if (isWhole && !Number.isInteger(n)) return texts.common.enterAWholeNumber;
	if (isAbove && min !== undefined && n <= min) return texts.parameters.enterANumberAbove(min);
	if (min !== undefined && n < min) return texts.parameters.enterOrMore(min);
	if (max !== undefined && n > max) return texts.parameters.enterOrLess(max);
	return "";
}

/** Returns what is wrong with a logit bias, or an empty string. */
export function biasError(typed: string): string {
	if (typed.trim() === "") return "";
	try {
		const value: unknown = JSON.parse(typed);
		const isRight = typeof value === "object" && value !== null && !Array.isArray(value) && Object.values(value).every((n) => typeof n === "number");
		return isRight ? "" : texts.parameters.enterObjectNumberEach;
	} catch {
		return texts.parameters.enterJson;
	}
}

/** Returns the fields of a request. Numbers that can't be right are left out. */
export function fieldsOf(o: Options): Record<string, unknown> {
	const fields: Record<string, unknown> = {};
	for (const name of numberNames) {
		const typed = o.numbers[name]?.trim();
		if (typed && !numberError(name, typed)) fields[name] = Number(typed);
	}
	if (o.draftModel.trim()) fields["draft_model"] = o.draftModel.trim();
	if (o.bias.trim() && !biasError(o.bias)) fields["logit_bias"] = JSON.parse(o.bias);
	if (o.preset) fields["preset"] = o.preset;
	if (o.reasoning) fields["reasoning"] = o.reasoning;
	const stops = o.stop.split("\n").filter((s) => s !== "");
	if (stops.length > 0) fields["stop"] = stops;
	const servers = Object.entries(o.servers);
	if (servers.length > 0) {
		fields["integrations"] = servers.map(([label, tools]) => ({ type: "plugin", id: "mcp/" + label, ...(tools && { allowed_tools: tools }) }));
		if (o.isAsked && o.isStored) fields["tool_approval"] = true;
	}
	if (o.isStored) fields["background"] = true;
	else fields["store"] = false;
	return fields;
}
