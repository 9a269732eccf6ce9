import { useState } from "preact/hooks";
import { inBrowser } from "../core/keep";
import { onSignOut } from "../core/session";
import { Store, useStore } from "../core/store";
import { Button } from "../ui/Button";
import { Select, TextField } from "../ui/Field";
import { toast } from "../ui/toast";
import { chat, setModel } from "./chat";
import { options, type Options } from "./options";

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
		toast(`Saved as ${key}, in this browser.`);
	};
	const remove = () => {
		const { [chosen]: _, ...others } = all;
		saved.set(others);
		setChosen("");
	};
	return (
		<fieldset class="bare saved-settings">
			<legend class="visually-hidden">Saved settings</legend>
			{names.length > 0 && (
				<Select label="Saved settings" value={chosen} onChange={use} choices={[{ value: "", text: "None" }, ...names]} />
			)}
			{chosen && (
				<Button icon="trash" onClick={remove}>
					Forget {chosen}
				</Button>
			)}
			<TextField label="Save all of this as" value={name} onInput={setName} maxLength={60} placeholder="A name" />
			<Button disabledFor={name.trim() ? null : "Type a name first."} onClick={save}>
				Save
			</Button>
		</fieldset>
	);
}
