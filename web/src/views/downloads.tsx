import { useEffect, useRef, useState } from "preact/hooks";
import { formatBytes, formatCompact, formatDay, plural } from "../core/format";
import { get, isAbort } from "../core/http";
import { setQuery, useRoute } from "../core/router";
import { lacks, useCan } from "../core/session";
import type { FoundModel, FoundModels } from "../core/types";
import { Button } from "../ui/Button";
import { TextField } from "../ui/Field";
import { Badge, Empty, Failure, Loading } from "../ui/states";
import { Table } from "../ui/Table";
import { announce } from "../ui/toast";
import { Section, View } from "../ui/View";
import { DownloadDialog } from "./downloaddialog";
import { Jobs } from "./jobs";

export function Downloads() {
	const disabledFor = useCan("models.manage") ? null : lacks("models.manage");
	return (
		<View title="Downloads" lead="Find models on the configured hubs, and download what fits this machine.">
			<Jobs disabledFor={disabledFor} />
			<Section title="Find a model">{disabledFor ? <Empty icon="tokens" title={disabledFor} /> : <Search />}</Section>
		</View>
	);
}

interface Answer {
	models: FoundModel[] | null;
	error: Error | null;
	isLoading: boolean;
}

function Search() {
	const { query } = useRoute();
	const asked = query.get("q") ?? "";
	const [input, setInput] = useState(asked);
	const [answer, ask] = useSearch(asked);
	const [chosen, setChosen] = useState<string | null>(null);
	return (
		<>
			<form
				class="filters"
				role="search"
				onSubmit={(e) => {
					e.preventDefault();
					if (input.trim() === asked) ask();
					else setQuery({ q: input.trim() });
				}}
			>
				<TextField label="Search or name" type="search" placeholder="qwen3 4b" value={input} onInput={setInput} hint="The name of a repository, publisher/repository, or its URL can be downloaded directly" />
				<div class="actions with-hint">
					<Button type="submit" kind="primary" icon="search">
						Search
					</Button>
					<Button disabledFor={isName(input) ? null : "Enter publisher/repository or the URL of a repository first."} onClick={() => setChosen(input.trim())}>
						Download this…
					</Button>
				</div>
			</form>
			{answer.error && <Failure error={answer.error} retry={ask} />}
			{answer.isLoading && <Loading />}
			{answer.models && <Results models={answer.models} onChoose={(m) => setChosen(m.model)} />}
			{chosen !== null && <DownloadDialog model={chosen} onClose={() => setChosen(null)} />}
		</>
	);
}

const isName = (text: string): boolean => /^[^\s/]+\/[^\s]+$/.test(text.trim());

/** Searches the hubs. A search sends them a dozen requests, so it begins only when it is asked for. */
function useSearch(query: string): [Answer, () => void] {
	const nothing = { models: null, error: null, isLoading: false };
	const [answer, setAnswer] = useState<Answer>(nothing);
	const [attempt, setAttempt] = useState(0);
	const ending = useRef<AbortController>(undefined);
	useEffect(() => {
		ending.current?.abort();
		if (!query) return setAnswer(nothing);
		const now = (ending.current = new AbortController());
		setAnswer({ ...nothing, isLoading: true });
		get<FoundModels>("/api/v1/models/search", { query: { query, limit: 30 }, signal: now.signal }).then(
			({ models }) => {
				setAnswer({ ...nothing, models });
				announce(`${plural(models.length, "model")} found`);
			},
			(error: Error) => !isAbort(error) && setAnswer({ ...nothing, error }),
		);
		return () => now.abort();
	}, [query, attempt]);
	return [answer, () => setAttempt((n) => n + 1)];
}

function Results({ models, onChoose }: { models: FoundModel[]; onChoose: (m: FoundModel) => void }) {
	return (
		<Table
			label="Found models"
			rows={models}
			rowKey={(m) => m.url + m.model}
			columns={[
				{
					title: "Model",
					name: true,
					render: (m) => (
						<div class="name-cell">
							<a href={m.url} target="_blank" rel="noopener noreferrer">
								{m.model}
							</a>
							<span class="row tight">
								{m.well_known && <Badge tone="busy">Recommended</Badge>}
								{m.gated && <Badge tone="warning">Gated</Badge>}
								{m.downloaded && <Badge tone="good">Downloaded</Badge>}
							</span>
						</div>
					),
				},
				{ title: "Best quantization here", minor: true, render: (m) => m.quantization || "–" },
				{ title: "Size", numeric: true, minor: "phone", render: (m) => formatBytes(m.size_bytes) },
				{ title: "Memory", render: (m) => <Fits fits={m.fits_memory} /> },
				{ title: "Downloads", numeric: true, minor: true, render: (m) => formatCompact(m.downloads) },
				{ title: "Updated", minor: true, render: (m) => formatDay(m.updated_at) },
				{
					title: "Actions",
					hideTitle: true,
					render: (m) => (
						<span class="actions">
							<Button small onClick={() => onChoose(m)} aria-label={`Download ${m.model}`}>
								Download…
							</Button>
						</span>
					),
				},
			]}
			empty={
				<Empty icon="search" title="No model was found">
					<p>All words must be in the model's name. Try fewer, or only the name of the family.</p>
				</Empty>
			}
		/>
	);
}

/** Whether something fits into this machine's memory. */
export function Fits({ fits }: { fits: boolean | null }) {
	if (fits === null) return <span class="muted">Unknown</span>;
	return fits ? <Badge tone="good">Fits</Badge> : <Badge tone="bad">Too large</Badge>;
}

