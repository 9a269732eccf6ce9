import { useState } from "preact/hooks";
import { formatBytes, formatNumber, plural } from "../core/format";
import type { Model } from "../core/types";
import { Button } from "../ui/Button";
import { Dialog } from "../ui/Dialog";
import { TextField } from "../ui/Field";
import { Icon } from "../ui/icons";
import { Key } from "../ui/Key";
import { Badge } from "../ui/states";
import { useFits, type Fit } from "./fits";

const mostShown = 60;
const mostAsked = 16; // models of which the server is asked whether they fit

/** Chooses the model that is asked. A name that isn't listed can be typed. */
export function ModelPicker({ models, value, onChoose }: { models: readonly Model[]; value: string; onChoose: (model: string) => void }) {
	const [isOpen, setOpen] = useState(false);
	return (
		<>
			<button type="button" class="button model-picker" value={value} aria-haspopup="dialog" aria-label={`Model: ${value || "Choose a model"}`} title={value} onClick={() => setOpen(true)}>
				<span>{value || "Choose a model"}</span>
				<Icon name="down" />
			</button>
			{isOpen && <ModelChoice title="Choose a model" models={models} value={value} onChoose={onChoose} onClose={() => setOpen(false)} />}
		</>
	);
}

interface ChoiceProps {
	title: string;
	models: readonly Model[];
	value: string;
	onChoose: (model: string) => void;
	onClose: () => void;
}

/** Asks for a model. */
export function ModelChoice({ title, models, value, onChoose, onClose }: ChoiceProps) {
	const [query, setQuery] = useState("");
	const words = query.toLowerCase().split(/\s+/);
	const fitting = models.filter((m) => words.every((w) => textOf(m).includes(w))).sort((a, b) => rank(a) - rank(b) || a.key.localeCompare(b.key));
	const choose = (key: string) => {
		onChoose(key);
		onClose();
	};
	const typed = query.trim();
	const fits = useFits(fitting.filter((m) => m.loaded_instances.length === 0 && !m.places).slice(0, mostAsked).map((m) => m.key));
	return (
		<Dialog title={title} wide onClose={onClose} onSubmit={() => (fitting[0] || typed) && choose(fitting[0]?.key ?? typed)}>
			<TextField label="Search" type="search" placeholder="Name, quantization, vision, tools, thinking" value={query} onInput={setQuery} hint="Enter takes the first one" />
			<ul class="model-choices" aria-label="Models">
				{fitting.slice(0, mostShown).map((m) => (
					<li key={m.key}>
						<button type="button" value={m.key} aria-current={m.key === value ? "true" : undefined} onClick={() => choose(m.key)}>
							<span class="key">
								<Key of={m.key} />
							</span>
							<span class="row tight">
								{m.loaded_instances.length > 0 ? <Badge tone="good">Loaded</Badge> : <Fitting fit={fits.get(m.key)} />}
								{m.capabilities?.vision && <Badge>Vision</Badge>}
								{m.capabilities?.trained_for_tool_use && <Badge>Tools</Badge>}
								{m.capabilities?.reasoning && <Badge>Thinking</Badge>}
							</span>
							<span class="muted tabular">
								{[m.quantization?.name, m.size_bytes ? formatBytes(m.size_bytes) : "", m.max_context_length ? `${formatNumber(m.max_context_length)} context` : ""].filter(Boolean).join(" · ")}
							</span>
						</button>
					</li>
				))}
			</ul>
			{fitting.length > mostShown && <p class="muted hint">{plural(fitting.length - mostShown, "more model")}: search for it.</p>}
			{fitting.length === 0 && (
				<p class="row">
					<span class="muted">No model on the list matches.</span>
					{typed && <Button onClick={() => choose(typed)}>Ask {typed}</Button>}
				</p>
			)}
		</Dialog>
	);
}

const fitTones = { fits: "good", "makes room": "warning", "too large": "bad" } as const;
const fitWords = { fits: "Fits", "makes room": "Fits after making room", "too large": "Too large" } as const;

function Fitting({ fit }: { fit: Fit | undefined }) {
	return fit ? <Badge tone={fitTones[fit]}>{fitWords[fit]}</Badge> : null;
}

const rank = (m: Model): number => (m.loaded_instances.length > 0 ? 0 : 1);

function textOf(m: Model): string {
	const { vision, trained_for_tool_use: tools, reasoning } = m.capabilities ?? {};
	return [m.key, m.display_name, m.architecture, m.quantization?.name, m.params_string, ...(m.aliases ?? []), vision && "vision", tools && "tools", reasoning && "thinking"]
		.join(" ")
		.toLowerCase();
}
