package request

// An engine is asked for the vectors or ranks of so many texts at a time, and of so many bytes of them unless one is longer.
const (
	partInputs = 32
	partBytes  = 32 << 10
)

// parts cuts texts into what an engine is asked for at a time.
func parts[T ~string | ~[]byte](texts []T) (parts [][]T) {
	first, size := 0, 0
	for i, text := range texts {
		if i > first && (i-first == partInputs || size+len(text) > partBytes) {
			parts = append(parts, texts[first:i])
			first, size = i, 0
		}
		size += len(text)
	}
	return append(parts, texts[first:])
}
