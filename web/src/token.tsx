import { useState } from "preact/hooks";
import { get, messageOf } from "./core/http";
import { session, signIn, stopAsking } from "./core/session";
import { useStore } from "./core/store";
import type { Settings } from "./core/types";
import { Button } from "./ui/Button";
import { Dialog } from "./ui/Dialog";
import { TextField } from "./ui/Field";

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
		if (!token) return setError("Enter a token first.");
		if (!/^[\x21-\x7e]+$/.test(token)) return setError("A token has no spaces or special characters. Copy it again.");
		setBusy(true);
		try {
			const settings = await get<Settings>("/api/v1/settings", { token });
			if (!settings.identity) throw new Error("The API token is not valid: it was mistyped, or has been revoked.");
			signIn(token, settings);
		} catch (error) {
			setError(messageOf(error));
			setBusy(false);
		}
	};
	return (
		<Dialog
			title="API token"
			onClose={isRequired ? undefined : stopAsking}
			onSubmit={() => void submit()}
			actions={
				<>
					{!isRequired && <Button onClick={stopAsking}>Cancel</Button>}
					<Button type="submit" kind="primary" aria-busy={isBusy}>
						Continue
					</Button>
				</>
			}
		>
			<p>
				{isRequired ? "This server needs an API token. " : ""}
				On the server's machine, <code>lmcaddy token create --name page</code> makes one.
			</p>
			<TextField label="Token" type="password" value={input} onInput={(v) => (setInput(v), setError(null))} error={error} placeholder="sk-lm-…" />
			<p class="hint">The token is kept in this tab until you close it or sign out.</p>
		</Dialog>
	);
}
