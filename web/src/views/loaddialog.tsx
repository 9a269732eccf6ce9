import { useEffect, useState } from "preact/hooks";
import { ApiError, isAbort, messageOf, post, send } from "../core/http";
import { formatBytes, formatDuration, formatNumber } from "../core/format";
import { readEvents } from "../core/sse";
import type { LoadEstimate, Loaded, Model } from "../core/types";
import { Button } from "../ui/Button";
import { Dialog } from "../ui/Dialog";
import { Checkbox, Select, TextField } from "../ui/Field";
import { Progress } from "../ui/Meter";
import { Failure, Loading, Note } from "../ui/states";
import { announce, toast } from "../ui/toast";
import { Estimate } from "./estimate";

const usual = 32_768; // tokens: what the server chooses at most

/** What is typed into the dialog; empty: as the server chooses. */
const unset = { context_length: "", parallel: "", eval_batch_size: "", num_experts: "", ttl: "", identifier: "", flash_attention: "", offload: "" };
type Input = typeof unset;
type NumberName = "context_length" | "parallel" | "eval_batch_size" | "num_experts" | "ttl";

const numbers: readonly NumberName[] = ["context_length", "parallel", "eval_batch_size", "num_experts", "ttl"];

const most = 2 ** 31 - 1;

/** The body of a load, and what is wrong with the input. */
function read(model: Model, input: Input, pinned: boolean) {
	const body: Record<string, unknown> = { model: model.key };
	const wrong: Partial<Record<keyof Input, string>> = {};
	for (const name of numbers) {
		const text = input[name].trim();
		if (!text) continue;
		const least = name === "ttl" ? -1 : 1;
		if (!/^-?\d+$/.test(text) || Number(text) < least) wrong[name] = `Enter a whole number of at least ${least}.`;
		else if (Number(text) > most) wrong[name] = `Enter at most ${formatNumber(most)}.`;
		else body[name] = Number(text);
	}
	if (input.flash_attention) body["flash_attention"] = input.flash_attention === "on";
	if (input.offload) body["offload_kv_cache_to_gpu"] = input.offload === "on";
	if (input.identifier.trim()) body["identifier"] = input.identifier.trim();
	if (pinned) body["pinned"] = true;
	return { body, wrong };
}

const onOff = [
	{ value: "", text: "Engine's choice" },
	{ value: "on", text: "On" },
	{ value: "off", text: "Off" },
];

export function LoadDialog({ model, onClose }: { model: Model; onClose: () => void }) {
	const [input, setInput] = useState(unset);
	const [pinned, setPinned] = useState(false);
	const [progress, setProgress] = useState<number | null | undefined>(undefined); // undefined: it isn't being loaded
	const [error, setError] = useState<ApiError | null>(null);
	const { body, wrong } = read(model, input, pinned);
	const isValid = Object.keys(wrong).length === 0;
	const estimate = useEstimate(body, isValid && progress === undefined);
	const set = (name: keyof Input) => (value: string) => {
		setError(null);
		setInput((all) => ({ ...all, [name]: value }));
	};
	const field = (name: keyof Input) => ({ value: input[name], onInput: set(name), error: wrong[name] ?? (error?.param === name ? error.message : null) });
	const load = async () => {
		if (!isValid || progress !== undefined) return;
		setProgress(null);
		setError(null);
		try {
			const loaded = await stream(body, setProgress);
			toast(`${loaded.instance_id} is loaded, after ${formatDuration(loaded.load_time_seconds)}${loaded.placement ? `, and not wholly on the GPU: ${loaded.placement}` : ""}.`);
			onClose();
		} catch (failure) {
			if (isAbort(failure)) return;
			setError(failure instanceof ApiError ? failure : new ApiError(0, messageOf(failure)));
			setProgress(undefined);
		}
	};
	const isLoading = progress !== undefined;
	return (
		<Dialog
			title={`Load ${model.key}`}
			wide
			onClose={onClose}
			onSubmit={() => void load()}
			actions={
				<>
					<Button onClick={onClose}>{isLoading ? "Continue in the background" : "Cancel"}</Button>
					<Button type="submit" kind="primary" disabledFor={isLoading ? "It is being loaded." : isValid ? null : "Correct the fields first."}>
						Load
					</Button>
				</>
			}
		>
			{isLoading ? <Progress label={`Loading ${model.key}`} value={progress ?? null} /> : <EstimateOf state={estimate} />}
			{error && !(error.param in input) && <Failure error={error} />}
			<fieldset class="bare fields" disabled={isLoading}>
				<legend class="visually-hidden">Settings of the load</legend>
				<TextField label="Context length" inputMode="numeric" placeholder={`Longest that fits, up to ${formatNumber(Math.min(model.max_context_length || usual, usual))}`} hint={`Tokens for one request${model.max_context_length > 0 ? `; at most ${formatNumber(model.max_context_length)}` : ""}`} {...field("context_length")} />
				<TextField label="Requests at a time" inputMode="numeric" placeholder="Chosen by memory" hint="Each has a context of its own" {...field("parallel")} />
				<TextField label="Unload after" inputMode="numeric" placeholder="Never" hint="Seconds without a request; 0 or -1: never" {...field("ttl")} />
				<TextField label="Identifier" placeholder={model.key} hint="The id for requests, if you load it more than once" {...field("identifier")} />
				<Select label="Flash attention" value={input.flash_attention} onChange={set("flash_attention")} choices={onOff} />
				<Select label="KV cache on the GPU" value={input.offload} onChange={set("offload")} choices={onOff} />
				<TextField label="Batch size" inputMode="numeric" placeholder="Engine's choice" hint="Prompt tokens evaluated at a time" {...field("eval_batch_size")} />
				<TextField label="Active experts" inputMode="numeric" placeholder="As trained" hint="Of a mixture of experts" {...field("num_experts")} />
				<Checkbox label="Pin" hint="Never unload it for another model" checked={pinned} onChange={setPinned} />
			</fieldset>
		</Dialog>
	);
}

/** Loads a model, and tells of the progress. */
async function stream(body: object, onProgress: (share: number) => void): Promise<Loaded> {
	const response = await send("POST", "/api/v1/models/load", { body, headers: { Accept: "text/event-stream" } });
	for await (const { data } of readEvents(response)) {
		const event = JSON.parse(data) as { type: string; progress?: number; result?: Loaded; error?: { message: string; code?: string; param?: string } };
		if (event.type === "model_load.progress" && event.progress !== undefined) onProgress(event.progress);
		if (event.type === "model_load.end" && event.result) return event.result;
		if (event.error) throw new ApiError(200, event.error.message, event.error.code, event.error.param ?? "");
	}
	throw new ApiError(0, "The connection was lost while the model was loaded. It may be loaded nevertheless.");
}

interface Estimated {
	estimate: LoadEstimate | null;
	error: Error | null;
}

const settleTime = 250; // milliseconds without typing before the server is asked

/** What the load would take with the settings as they are. */
function useEstimate(body: Record<string, unknown>, isWanted: boolean): Estimated {
	const [state, setState] = useState<Estimated>({ estimate: null, error: null });
	const { pinned: _, ...asked } = body;
	const key = JSON.stringify(asked);
	useEffect(() => {
		if (!isWanted) return;
		const ending = new AbortController();
		const timer = setTimeout(() => {
			post<LoadEstimate>("/api/v1/models/load", { ...asked, estimate_only: true }, { signal: ending.signal }).then(
				(estimate) => {
					setState({ estimate, error: null });
					announce(`It would take ${formatBytes(estimate.memory.total_bytes)} of memory${estimate.fits ? "" : ", which doesn't fit"}.`);
				},
				(error: Error) => !isAbort(error) && setState((s) => ({ ...s, error })),
			);
		}, settleTime);
		return () => {
			clearTimeout(timer);
			ending.abort();
		};
	}, [key, isWanted]);
	return state;
}

function EstimateOf({ state: { estimate, error } }: { state: Estimated }) {
	if (error instanceof ApiError && error.code === "not_supported") return <Note>{error.message}</Note>; // such as of another server's model
	if (error) return <Failure error={error} />;
	return estimate ? <Estimate of={estimate} /> : <Loading />;
}
