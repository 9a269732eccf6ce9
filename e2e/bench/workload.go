package bench

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
)

// workload is a kind of request.
type workload struct {
	name    string
	size    int     // of the body, in bytes, at least
	events  int     // of the answer
	pauseUS int     // between the answer's events, in microseconds; 0: none
	isLong  bool    // the answer's chunks are measured
	isProse bool    // the texts have nothing that JSON has to escape
	isWhole bool    // all targets are asked for an answer in one piece, and the engine answers so if it is asked for that
	most    float64 // of our median and processor time, as a multiple of plain Caddy's
}

var (
	small = workload{name: "small body", size: 600, events: 8, most: 1}
	large = workload{name: "1 MiB body", size: 1 << 20, events: 8, most: 1.6}
)

// workloads are all workloads. Streams are measured twice: at full speed, when a slow proxy passes on much at a time, and paced
// like tokens.
func workloads(events int) []workload {
	return []workload{
		small,
		{name: "whole answer", size: 600, events: 8, isWhole: true, most: 1},
		{name: "64 KiB body", size: 64 << 10, events: 8, most: 1.1},
		large,
		{name: "64 KiB of prose", size: 64 << 10, events: 8, most: 1.1, isProse: true},
		{name: "1 MiB of prose", size: 1 << 20, events: 8, most: 1.6, isProse: true},
		{name: "stream at once", size: 600, events: events, isLong: true, most: 1},
		{name: "stream, paced", size: 600, events: max(shortest, events/4), pauseUS: 1000, isLong: true, most: 1},
	}
}

// applies reports whether a workload is measured on the target.
func (t target) applies(w workload) bool {
	return !t.gathers || !w.isLong && !w.isWhole // every target gathers a whole answer
}

// request returns the whole HTTP request. Its body is the same for all targets except for the value of stream, with the same
// length.
func (w workload) request(t target) []byte {
	body := w.body(!w.gathered(t))
	return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: bench\r\nAccept: */*\r\n"+
		"Authorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", t.endpoint(), t.address, cmp.Or(t.token, "none"), len(body), body)
}

// gathered reports whether the client gets an answer in one piece.
func (w workload) gathered(t target) bool { return w.isWhole || t.gathers }

func (w workload) body(stream bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"model":"lmcaddy/tinychat","max_tokens":%d,"seed":%d,"stream":%5t,"temperature":0.7,"messages":[`, w.events, w.pauseUS, stream)
	b.WriteString(`{"role":"system","content":"Answer briefly."}`)
	texts := said
	if w.isProse {
		texts = prose
	}
	for i := 0; b.Len() < w.size; i++ {
		text, role := texts[i%len(texts)], "user"
		if i%2 == 1 {
			role = "assistant"
		}
		encoded, err := json.Marshal(text)
		if err != nil {
			panic(err) // a string can be encoded
		}
		fmt.Fprintf(&b, `,{"role":"%s","content":%s}`, role, encoded)
	}
	b.WriteString(`]}`)
	return b.String()
}

// said is the text of conversations: prose and code, with characters that JSON has to escape, and letters of two bytes and more.
var said = []string{
	`Here is a function that reads a file line by line. It works, but it is slow on large files, and I don't see why. ` +
		`Could you look at it, and tell me what you'd change? I'd like to keep the interface as it is, since "others" use it.` +
		"\n\n```go\nfunc lines(path string) ([]string, error) {\n\tcontent, err := os.ReadFile(path)\n\tif err != nil {\n" +
		"\t\treturn nil, fmt.Errorf(\"reading %s: %w\", path, err)\n\t}\n\treturn strings.Split(string(content), \"\\n\"), nil\n}\n```\n",
	`The whole file is held in memory twice: once as bytes, once as a string, and the slices of the lines come on top of that. ` +
		`Read it with a scanner instead, and hand each line on as soon as you have it – naïve as it looks, that is all it takes. ` +
		"A few remarks:\n\n1. `bufio.Scanner` has a limit of 64 KiB for a line.\n2. The error of the scanner has to be looked at.\n" +
		`3. For Übergrößen → use a reader. 日本語のテキストも大丈夫です。`,
}

// prose is the text of conversations without code.
var prose = []string{
	"I have two weeks off in May, and I would like to spend them walking. I am looking for a coast with a path along it, villages that are a day apart, " +
		"and weather that is neither too hot nor too wet. Flights are out of the question, but a night train is fine. Where would you go, and what " +
		"would you take along? Please keep it short: three places, with a reason for each, and a list of what goes into the bag. My boots are old but good.",
	"Three coasts come to mind. The first is in the west of Brittany, where an old path of customs officers follows every cliff; it is green in May, and the " +
		"inns are open but empty. The second is Liguria, which is warmer and steeper, with a train at every village in case your legs give up. The third is " +
		"the south of Portugal, though the way there takes a day more. Take a light rain jacket, two shirts, a hat, a bottle, and plasters for the first days.",
}
