import { useEffect, useRef, useState } from "preact/hooks";
import { useStore } from "../core/store";
import { Button } from "../ui/Button";
import type { IconName } from "../ui/icons";
import { toast } from "../ui/toast";
import { askDraft, stop } from "./chat";
import { draft, isEmpty } from "./draft";
import { mostFiles, readText, tokensOf } from "./files";
import { filesIn, mostImages, readImage } from "./images";
import { isRecording, mostRecordings, Player, readRecording } from "./recordings";
import type { Question } from "./tree";
import { texts } from "../texts";

interface Props {
	isRunning: boolean;
	/** Why nothing can be asked now; null: it can. */
	refuses: string | null;
	/** Why images can't be added; null: they can. */
	refusesImages: string | null;
	/** Why recordings can't be added; null: they can. */
	refusesAudio: string | null;
	chips: string[];
	/** How much context the model has, and how much of it the conversation takes, in tokens; 0: unknown. */
	context: { length: number; used: number };
}

/** Where questions are written. */
export function Composer({ isRunning, refuses, refusesImages, refusesAudio, chips, context }: Props) {
	const question = useStore(draft);
	const area = useRef<HTMLTextAreaElement>(null);
	const [isOver, setOver] = useState(false);
	useEffect(() => {
		if (!sizesItself) grow(area.current);
	}, [question.text]);

	const add = async (files: File[]) => {
		for (const file of files) {
			const isImage = file.type.startsWith("image/") && file.type !== "image/svg+xml";
			if (isImage && refusesImages) return toast(refusesImages, "error");
			if (isImage && draft.value.images.length >= mostImages) return toast(texts.composer.questionCanImages(mostImages), "error");
			const isAudio = !isImage && isRecording(file);
			if (isAudio && refusesAudio) return toast(refusesAudio, "error");
			if (isAudio && (draft.value.recordings?.length ?? 0) >= mostRecordings) return toast(texts.composer.questionCanRecordings(mostRecordings), "error");
			if (!isImage && !isAudio && (draft.value.files?.length ?? 0) >= mostFiles) return toast(texts.composer.questionCanFiles(mostFiles), "error");
			try {
				if (isImage) {
					const url = await readImage(file);
					draft.set({ ...draft.value, images: [...draft.value.images, url] });
				} else if (isAudio) {
					const recording = await readRecording(file);
					draft.set({ ...draft.value, recordings: [...(draft.value.recordings ?? []), recording] });
				} else {
					const text = await readText(file);
					draft.set({ ...draft.value, files: [...(draft.value.files ?? []), text] });
				}
			} catch (error) {
				toast(error instanceof Error ? error.message : String(error), "error");
			}
		}
	};
	const why = refuses ?? (isEmpty(question) ? texts.composer.typeAQuestionFirst : null);
	const ask = () => {
		if (!why && !isRunning) askDraft();
	};
	return (
		<form
			class={isOver ? "composer over" : "composer"}
			aria-label={texts.composer.ask}
			onSubmit={(e) => {
				e.preventDefault();
				ask();
			}}
			onDragOver={(e) => {
				e.preventDefault();
				setOver(true);
			}}
			onDragLeave={() => setOver(false)}
			onDrop={(e) => {
				e.preventDefault();
				setOver(false);
				void add(filesIn(e.dataTransfer));
			}}
		>
			<Images />
			<Recordings />
			<Files />
			<Size question={question} context={context} />
			<textarea
				ref={area}
				aria-label={texts.common.question}
				data-next
				placeholder={isRunning ? texts.composer.writeTheNextQuestion : texts.composer.askSomething}
				rows={1}
				value={question.text}
				onInput={(e) => draft.set({ ...draft.value, text: e.currentTarget.value })}
				onKeyDown={(e) => {
					if (e.key !== "Enter" || e.shiftKey || e.isComposing) return;
					e.preventDefault();
					ask();
				}}
				onPaste={(e) => {
					const files = filesIn(e.clipboardData);
					if (files.length === 0) return;
					e.preventDefault();
					void add(files);
				}}
			/>
			<div class="composer-bar">
				<Attach label={texts.composer.addFilesOrImages} icon="plus" onFiles={add} />
				{!refusesImages && hasCamera() && <Attach label={texts.composer.takeAPicture} icon="camera" camera onFiles={add} />}
				<span class="chips">
					{chips.map((c) => (
						<span key={c} class="badge neutral">
							{c}
						</span>
					))}
				</span>
				{isRunning ? (
					<Button icon="stop" onClick={stop}>{texts.composer.stop}</Button>
				) : (
					<Button type="submit" kind="primary" icon="send" disabledFor={why}>{texts.common.send}</Button>
				)}
			</div>
		</form>
	);
}

/** Whether the browser makes a field as high as its text, by the style, which takes no layout of its own. */
const sizesItself = CSS.supports("field-sizing", "content");

function grow(area: HTMLTextAreaElement | null): void {
	if (!area) return;
	area.style.height = "auto";
	area.style.height = Math.min(area.scrollHeight + 2, innerHeight * 0.4) + "px";
}

function Images() {
	const { images } = useStore(draft);
	if (images.length === 0) return null;
	return (
		<ul class="images" aria-label={texts.composer.imagesOfTheQuestion}>
			{images.map((url, i) => (
				<li key={i}>
					<img src={url} alt={texts.composer.image(i + 1)} />
					<Button
						small
						icon="close"
						label={texts.composer.removeImage(i + 1)}
						onClick={() => draft.set({ ...draft.value, images: draft.value.images.filter((_, at) => at !== i) })}
					/>
				</li>
			))}
		</ul>
	);
}

function Recordings() {
	const { recordings = [] } = useStore(draft);
	if (recordings.length === 0) return null;
	return (
		<ul class="files" aria-label={texts.composer.recordingsOfTheQuestion}>
			{recordings.map((r, i) => (
				<li key={r.url}>
					<Player of={r} label={texts.turn.recording(i + 1)} />
					<Button kind="quiet" small icon="close" label={texts.composer.removeName(r.name)} onClick={() => draft.set({ ...draft.value, recordings: recordings.filter((_, at) => at !== i) })} />
				</li>
			))}
		</ul>
	);
}

function Files() {
	const { files = [] } = useStore(draft);
	if (files.length === 0) return null;
	return (
		<ul class="files" aria-label={texts.composer.filesOfTheQuestion}>
			{files.map((f, i) => (
				<li key={i}>
					<span class="file-name">{f.name}</span>
					<span class="muted nowrap">{texts.composer.about(tokensOf(f.text))}</span>
					<Button kind="quiet" small icon="close" label={texts.composer.removeName(f.name)} onClick={() => draft.set({ ...draft.value, files: files.filter((_, at) => at !== i) })} />
				</li>
			))}
		</ul>
	);
}

const tokensOfImage = 1000; // about, of most models

/** Warns of a question that won't fit, and shows what one with files takes. */
function Size({ question, context: { length, used } }: { question: Question; context: Props["context"] }) {
	const { text, files = [], images } = question;
	const tokens = tokensOf(text) + files.reduce((n, f) => n + tokensOf(f.text), 0) + images.length * tokensOfImage;
	if (length === 0 || (files.length === 0 && tokens + used < length)) return null;
	const isTooMuch = tokens + used >= length;
	return (
		<p class={isTooMuch ? "size error-text" : "size hint"} role={isTooMuch ? "status" : undefined}>
			{texts.composer.size(tokens, used, length)}
			{isTooMuch && " " + texts.composer.tooMuchModelTake}
		</p>
	);
}

/** Reports whether this is a device that people take pictures with. */
const hasCamera = (): boolean => matchMedia("(pointer: coarse)").matches;

function Attach({ label, icon, camera = false, onFiles }: { label: string; icon: IconName; camera?: boolean; onFiles: (files: File[]) => void }) {
	const input = useRef<HTMLInputElement>(null);
	return (
		<>
			<Button kind="quiet" icon={icon} label={label} onClick={() => input.current?.click()} />
			<input
				ref={input}
				type="file"
				multiple={!camera}
				{...(camera && { accept: "image/*", capture: "environment" })}
				hidden
				aria-label={camera ? texts.composer.picture : texts.common.files}
				onChange={(e) => {
					onFiles([...(e.currentTarget.files ?? [])]);
					e.currentTarget.value = "";
				}}
			/>
		</>
	);
}
