import { useEffect, useState } from "preact/hooks";
import { formatBytes } from "../core/format";
import { get, isAbort, post } from "../core/http";
import type { DownloadPreview, Variant, Variants } from "../core/types";
import { Button } from "../ui/Button";
import { Dialog } from "../ui/Dialog";
import { Badge, Failure, Loading, Note } from "../ui/states";
import { toast } from "../ui/toast";

interface State<T> {
	data: T | null;
	error: Error | null;
}

/** Fetches something for a dialog, and again when the key changes. */
function useFetched<T>(key: string, fetch: (signal: AbortSignal) => Promise<T>): State<T> {
	const [state, setState] = useState<State<T>>({ data: null, error: null });
	useEffect(() => {
		const ending = new AbortController();
		setState({ data: null, error: null });
		fetch(ending.signal).then(
			(data) => !ending.signal.aborted && setState({ data, error: null }),
			(error: Error) => !isAbort(error) && setState({ data: null, error }),
		);
		return () => ending.abort();
	}, [key]);
	return state;
}

/** Chooses what to download of a model. */
export function DownloadDialog({ model, onClose }: { model: string; onClose: () => void }) {
	const variants = useFetched(model, (signal) => get<Variants>("/api/v1/models/variants", { query: { model }, signal }));
	const [chosen, setChosen] = useState<string | null>(null);
	const all = variants.data?.variants ?? [];
	const quantization = chosen ?? (all.find((v) => v.recommended) ?? all.find((v) => v.fits_memory !== false) ?? all[0])?.quantization ?? "";
	const body = withQuantization(model, quantization);
	const isReady = variants.data !== null || variants.error !== null;
	const preview = useFetched<DownloadPreview>(JSON.stringify([body, isReady]), (signal) =>
		isReady ? post<DownloadPreview>("/api/v1/models/download", { ...body, estimate_only: true }, { signal }) : new Promise<never>(() => undefined),
	);
	const p = preview.data;
	const reason = reasonAgainst(p);
	const start = async () => {
		if (reason) return;
		const started = await post<{ status: string }>("/api/v1/models/download", body);
		toast(started.status === "already_downloaded" ? "It is downloaded already." : `${p?.model ?? model} is being downloaded.`);
		onClose();
	};
	return (
		<Dialog
			title={`Download ${model}`}
			wide
			onClose={onClose}
			actions={
				<>
					<Button onClick={onClose}>Cancel</Button>
					<Button kind="primary" disabledFor={reason} onClick={start}>
						{p?.status === "paused" ? "Resume" : "Download"}
					</Button>
				</>
			}
		>
			{variants.error && <Failure error={variants.error} />}
			{!variants.data && !variants.error && <Loading />}
			{all.length > 0 && <Choices all={all} chosen={quantization} onChoose={setChosen} />}
			{preview.error ? <Failure error={preview.error} /> : isReady && (p ? <Preview of={p} /> : <Loading />)}
		</Dialog>
	);
}

/** The body of a request for one quantization. URLs have it in a field of its own, names after an @. */
function withQuantization(model: string, quantization: string): { model: string; quantization?: string } {
	if (!quantization) return { model };
	if (/^https?:/i.test(model)) return { model, quantization };
	return { model: `${model.replace(/@.*$/, "")}@${quantization}` };
}

/** Why a download can't be begun; null: it can. */
function reasonAgainst(p: DownloadPreview | null): string | null {
	if (!p) return "What it takes isn't known yet.";
	if (p.status === "already_downloaded") return "It is downloaded already.";
	if (p.status === "downloading") return "It is being downloaded.";
	return p.fits_disk ? null : "There isn't enough room on the disk.";
}

function Choices({ all, chosen, onChoose }: { all: readonly Variant[]; chosen: string; onChoose: (quantization: string) => void }) {
	return (
		<fieldset class="bare">
			<legend class="visually-hidden">Quantization</legend>
			<ul class="variants">
				{all.map((v) => (
					<li key={v.format + v.quantization}>
						<label class={v.quantization === chosen ? "chosen" : undefined}>
							<input type="radio" name="quantization" value={v.quantization} checked={v.quantization === chosen} onChange={() => onChoose(v.quantization)} />
							<span class="name">{v.quantization}</span>
							<span class="tabular">{formatBytes(v.size_bytes)}</span>
							<span class="row tight">
								{v.recommended && <Badge tone="busy">Recommended</Badge>}
								{v.fits_memory === false && <Badge tone="bad">Too large for the memory</Badge>}
								{v.fits_disk === false && <Badge tone="bad">No room on the disk</Badge>}
								{v.fits_memory && v.fits_disk !== false && <Badge tone="good">Fits</Badge>}
								{v.downloaded && <Badge>Downloaded</Badge>}
								{v.format !== "gguf" && <Badge>{v.format.toUpperCase()}</Badge>}
							</span>
						</label>
					</li>
				))}
			</ul>
		</fieldset>
	);
}

function Preview({ of: p }: { of: DownloadPreview }) {
	return (
		<div class="stack">
			<p>
				{p.status === "already_downloaded" ? (
					<>
						<strong>{p.model}</strong> is downloaded already.
					</>
				) : (
					<>
						It becomes <strong>{p.model}</strong>: {formatBytes(p.left_bytes)} to download
						{p.left_bytes < p.total_size_bytes && ` of ${formatBytes(p.total_size_bytes)}`}
						{p.disk_free_bytes !== null && `, ${formatBytes(p.disk_free_bytes)} free on the disk`}.
					</>
				)}
			</p>
			{!p.fits_disk && <Note kind="error">There isn't enough room on the disk. Delete models that you don't need, or choose a smaller quantization.</Note>}
			<details>
				<summary>{p.files.length === 1 ? "1 file" : `${p.files.length} files`}</summary>
				<ul>
					{p.files.map((f) => (
						<li key={f.path} class="row between">
							<span class="mono">{f.path}</span> <span class="tabular">{formatBytes(f.size_bytes)}</span>
						</li>
					))}
				</ul>
			</details>
		</div>
	);
}
