/** The key of a model, or the id of an instance, which is best broken after a slash. */
export function Key({ of: key }: { of: string }) {
	return (
		<>
			{key.split(/(?<=[/@])/).map((part, i) => (
				<>
					{i > 0 && <wbr />}
					{part}
				</>
			))}
		</>
	);
}
