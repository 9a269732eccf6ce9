import { useState } from "preact/hooks";
import { get, messageOf } from "./core/http";
import { session, signIn, stopAsking } from "./core/session";
import { useStore } from "./core/store";
import type { Settings } from "./core/types";
import { Button } from "./ui/Button";
import { Dialog } from "./ui/Dialog";
import { TextField } from "./ui/Field";
import { texts } from "./texts";

/** Asks for an API token while the session wants one. */
export function TokenDialog() {
	const { asking } = useStore(session);
	return asking && <Asking why={asking.why} isRequired={asking.isRequired} />;
}

function Asking({ why, isRequired }: { why: string; isRequired: boolean }) {
	const [input, setInput] = useState("");
	const [error, setError] = useState<string | null>(why || null);
	const [isBusy, setBusy] = useState(false);
	const submit = async () => {
		const token = input.trim();
		if (isBusy) return;
		if (!token) return setError(texts.tokenDialog.enterATokenFirst);
		if (!/^[\x21-\x7e]+$/.test(token)) return setError(texts.tokenDialog.tokenNoSpacesSpecial);
		setBusy(true);
		try {
			const settings = await get<Settings>("/api/v1/settings", { token });
			if (!settings.identity) throw new Error(texts.tokenDialog.apiTokenNotValid);
			signIn(token, settings);
		} catch (error) {
			setError(messageOf(error));
			setBusy(false);
		}
	};
	return (
		<Dialog
			title={texts.tokenDialog.apiToken}
			onClose={isRequired ? undefined : stopAsking}
			onSubmit={() => void submit()}
			actions={
				<>
					{!isRequired && <Button onClick={stopAsking}>{texts.common.cancel}</Button>}
					<Button type="submit" kind="primary" aria-busy={isBusy}>{texts.common.continue}</Button>
				</>
			}
		>
			<p>
				{isRequired ? texts.tokenDialog.serverNeedsApiToken + " " : ""}
				{texts.states.serversMachineMakesOne(<code>lmcaddy token create --name page</code>)}
			</p>
			<TextField label={texts.common.token} type="password" value={input} onInput={(v) => (setInput(v), setError(null))} error={error} placeholder={texts.tokenDialog.tokenExample} />
			<p class="hint">{texts.tokenDialog.tokenKeptTabUntil}</p>
		</Dialog>
	);
}
