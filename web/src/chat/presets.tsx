import { useState } from "preact/hooks";
import { inBrowser } from "../core/keep";
import { onSignOut } from "../core/session";
import { Store, useStore } from "../core/store";
import { Button } from "../ui/Button";
import { Select, TextField } from "../ui/Field";
import { toast } from "../ui/toast";
import { chat, setModel } from "./chat";
import { options, type Options } from "./options";
import { texts } from "../texts";

/** The settings of a chat under a name, in this browser. */
type Saved = Record<string, { model: string; options: Options }>;

const saved = new Store<Saved>(kept());

saved.follow((all) => inBrowser.set("chat.saved", Object.keys(all).length > 0 ? JSON.stringify(all) : null));

function kept(): Saved {
	try {
		return JSON.parse(inBrowser.get("chat.saved") ?? "{}") as Saved;
	} catch {
		return {};
	}
}

onSignOut(() => saved.set({}));

/** Saves what the chat asks with under a name, and gets it back, with the model. */
export function SavedSettings() {
	const all = useStore(saved);
	const [chosen, setChosen] = useState("");
	const [name, setName] = useState("");
	const names = Object.keys(all).sort((a, b) => a.localeCompare(b));
	const use = (key: string) => {
		const found = all[key];
		setChosen(key);
		if (!found) return;
		options.set({ ...options.value, ...found.options });
		if (found.model) setModel(found.model);
	};
	const save = () => {
		const key = name.trim();
		saved.set({ ...all, [key]: { model: chat.value.model, options: options.value } });
		setChosen(key);
		setName("");
		toast(texts.chatSettings.savedBrowserKey(key));
	};
	const remove = () => {
		const { [chosen]: _, ...others } = all;
		saved.set(others);
		setChosen("");
	};
	return (
		<fieldset class="bare saved-settings">
			<legend class="visually-hidden">{texts.chatSettings.savedSettings}</legend>
			{names.length > 0 && (
				<Select label={texts.chatSettings.savedSettings} value={chosen} onChange={use} choices={[{ value: "", text: texts.common.none }, ...names]} />
			)}
			{chosen && (
				<Button icon="trash" onClick={remove}>{texts.chatSettings.forgetChosen(chosen)}</Button>
			)}
			<TextField label={texts.chatSettings.saveAllOfThis} value={name} onInput={setName} maxLength={60} placeholder={texts.chatSettings.aName} />
			<Button disabledFor={name.trim() ? null : texts.chatSettings.typeANameFirst} onClick={save}>{texts.common.save}</Button>
		</fieldset>
	);
}
