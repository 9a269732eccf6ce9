import { useState } from "preact/hooks";
import { formatBytes, formatNumber } from "../core/format";
import type { Model } from "../core/types";
import { Button } from "../ui/Button";
import { Dialog } from "../ui/Dialog";
import { TextField } from "../ui/Field";
import { Icon } from "../ui/icons";
import { Key } from "../ui/Key";
import { Badge } from "../ui/states";
import { useFits, type Fit } from "./fits";
import { texts } from "../texts";

const mostShown = 60;
const mostAsked = 16; // models of which the server is asked whether they fit

/** Chooses the model that is asked. A name that isn't listed can be typed. */
export function ModelPicker({ models, value, onChoose }: { models: readonly Model[]; value: string; onChoose: (model: string) => void }) {
	const [isOpen, setOpen] = useState(false);
	return (
		<>
			<button type="button" class="button model-picker" value={value} aria-haspopup="dialog" aria-label={texts.modelPicker.model(value || texts.modelPicker.chooseAModel)} title={value} onClick={() => setOpen(true)}>
				<span>{value || texts.modelPicker.chooseAModel}</span>
				<Icon name="down" />
			</button>
			{isOpen && <ModelChoice title={texts.modelPicker.chooseAModel} models={models} value={value} onChoose={onChoose} onClose={() => setOpen(false)} />}
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
			<TextField label={texts.common.search} type="search" placeholder={texts.modelPicker.nameQuantizationVisionTools} value={query} onInput={setQuery} hint={texts.modelPicker.enterTakesFirstOne} />
			<ul class="model-choices" aria-label={texts.common.models}>
				{fitting.slice(0, mostShown).map((m) => (
					<li key={m.key}>
						<button type="button" value={m.key} aria-current={m.key === value ? "true" : undefined} onClick={() => choose(m.key)}>
							<span class="key">
								<Key of={m.key} />
							</span>
							<span class="row tight">
								{m.loaded_instances.length > 0 ? <Badge tone="good">{texts.common.loaded}</Badge> : <Fitting fit={fits.get(m.key)} />}
								{m.capabilities?.vision && <Badge>{texts.common.vision}</Badge>}
								{m.capabilities?.audio && <Badge>{texts.common.audio}</Badge>}
								{m.capabilities?.trained_for_tool_use && <Badge>{texts.common.tools}</Badge>}
								{m.capabilities?.reasoning && <Badge>{texts.common.thinking}</Badge>}
							</span>
							<span class="muted tabular">
								{[m.quantization?.name, m.size_bytes ? formatBytes(m.size_bytes) : "", m.max_context_length ? texts.modelPicker.context(formatNumber(m.max_context_length)) : ""].filter(Boolean).join(" · ")}
							</span>
						</button>
					</li>
				))}
			</ul>
			{fitting.length > mostShown && <p class="muted hint">{texts.modelPicker.searchForIt(fitting.length - mostShown)}</p>}
			{fitting.length === 0 && (
				<p class="row">
					<span class="muted">{texts.modelPicker.noModelListMatches}</span>
					{typed && <Button onClick={() => choose(typed)}>{texts.modelPicker.askTyped(typed)}</Button>}
				</p>
			)}
		</Dialog>
	);
}

const fitTones = { fits: "good", "makes room": "warning", "too large": "bad" } as const;
const fitWords = { fits: texts.common.fits, "makes room": texts.common.fitsAfterMakingRoom, "too large": texts.common.tooLarge } as const;

function Fitting({ fit }: { fit: Fit | undefined }) {
	return fit ? <Badge tone={fitTones[fit]}>{fitWords[fit]}</Badge> : null;
}

const rank = (m: Model): number => (m.loaded_instances.length > 0 ? 0 : 1);

function textOf(m: Model): string {
	const { vision, audio, trained_for_tool_use: tools, reasoning } = m.capabilities ?? {};
	return [m.key, m.display_name, m.architecture, m.quantization?.name, m.params_string, ...(m.aliases ?? []), vision && texts.common.vision, audio && texts.common.audio, tools && texts.common.tools, reasoning && texts.common.thinking]
		.join(" ")
		.toLowerCase();
}
