package store

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/translate"
)

// Turn is a request with its answer, a node in a tree of conversations.
type Turn struct {
	ID     string // chosen by the caller; unique among all owners
	Parent string // the turn that this one continues; empty for the first of a conversation
	Family string // the first turn of the conversation; set by Put
	Owner  string // owner of the token that may read it; empty: anonymous
	Model  string // key of the model
	Status Status

	// Dialect is the API that made the first turn of a conversation, for lists. Only Put uses it; turns that are read don't have it.
	Dialect string

	In, Out []translate.Item // the items that the request added, and the answer
	Request json.RawMessage  // the request's settings that are needed later, as the dialect has them; may be nil
	Usage   translate.Usage
	Figures translate.Figures

	Created time.Time // in nanoseconds; if it is zero, Put sets it

	// Maker is the server of a cluster that makes the answer of a turn in progress, by its Node.Boot; empty: there is no cluster. Turns
	// that are read don't have it.
	Maker string
}

// Status says how an answer ended, or that it hasn't.
type Status string

// The statuses of answers.
const (
	Completed  Status = "completed"
	Incomplete Status = "incomplete" // cut off by a limit or by the client
	Failed     Status = "failed"
	Cancelled  Status = "cancelled"   // by its owner
	InProgress Status = "in_progress" // a server is making it: see [Store.Renew]
)

var statuses = []Status{Completed, Incomplete, Failed, Cancelled, InProgress}

// MaxDepth is the largest number of turns in a conversation.
const MaxDepth = 10_000

// Bounds limits what Prune leaves.
type Bounds struct {
	// Age is how long a conversation is kept after its newest turn, with all its branches. 0: forever.
	Age time.Duration
	// Number is the number of turns to keep. If there are more, whole conversations are removed, those with the oldest newest turn
	// first. 0: no limit.
	Number int
}

// turnBody is the part of a turn that is stored as one value, since it isn't searched.
type turnBody struct {
	In      []translate.Item `json:"in,omitempty"`
	Out     []translate.Item `json:"out,omitempty"`
	Request json.RawMessage  `json:"request,omitempty"`
	Usage   usage            `json:"usage,omitzero"`

	Figures translate.Figures `json:"figures,omitzero"`
}

type usage struct {
	Prompt     int `json:"prompt,omitempty"`
	Cached     int `json:"cached,omitempty"`
	Completion int `json:"completion,omitempty"`
	Reasoning  int `json:"reasoning,omitempty"`
}

// blob is an image or a recording to store.
type blob struct {
	hash string
	data []byte
}

// encode returns the body of a turn and its media, without duplicates, sorted by hash. It doesn't modify the turn.
func encode(t *Turn) ([]byte, []blob, error) {
	var blobs []blob
	in, err := hashed(t.In, &blobs)
	if err != nil {
		return nil, nil, &Invalid{ID: t.ID, Reason: err.Error()}
	}
	out, err := hashed(t.Out, &blobs)
	if err != nil {
		return nil, nil, &Invalid{ID: t.ID, Reason: err.Error()}
	}
	encoded, err := json.Marshal(turnBody{In: in, Out: out, Request: t.Request, Usage: usage(t.Usage), Figures: t.Figures})
	if err != nil {
		return nil, nil, &Invalid{ID: t.ID, Reason: err.Error()}
	}
	slices.SortFunc(blobs, func(a, b blob) int { return cmp.Compare(a.hash, b.hash) })
	return encoded, slices.CompactFunc(blobs, func(a, b blob) bool { return a.hash == b.hash }), nil
}

// hashed returns items with the hashes of media, and appends these to blobs. It copies only items with media.
func hashed(items []translate.Item, blobs *[]blob) ([]translate.Item, error) {
	copied := false
	for i := range items {
		parts := items[i].Parts
		if !slices.ContainsFunc(parts, func(p translate.Part) bool { return p.Media != nil }) {
			continue
		}
		parts = slices.Clone(parts)
		for k := range parts {
			if parts[k].Media == nil {
				continue
			}
			file := *parts[k].Media
			if len(file.Data) == 0 {
				return nil, fmt.Errorf("item %d has a file without its bytes", i)
			}
			sum := sha256.Sum256(file.Data)
			file.Hash = hex.EncodeToString(sum[:])
			*blobs = append(*blobs, blob{file.Hash, file.Data})
			parts[k].Media = &file
		}
		if !copied {
			items, copied = slices.Clone(items), true
		}
		items[i].Parts = parts
	}
	return items, nil
}

func media(t *Turn, do func(*translate.Media)) {
	for _, items := range [][]translate.Item{t.In, t.Out} {
		for _, item := range items {
			for _, part := range item.Parts {
				if part.Media != nil {
					do(part.Media)
				}
			}
		}
	}
}

// joined returns the hashes of blobs in the form of the column turns.images.
func joined(blobs []blob) string {
	hashes := make([]string, len(blobs))
	for i, b := range blobs {
		hashes[i] = b.hash
	}
	return strings.Join(hashes, " ")
}

const (
	shareBlob = `UPDATE blobs SET refs = refs + 1 WHERE hash = $1`

	insertBlob = `INSERT INTO blobs (hash, refs, data) VALUES ($1, 1, $2) ON CONFLICT (hash) DO UPDATE SET refs = blobs.refs + 1`

	dropBlob = `DELETE FROM blobs WHERE hash = $1 AND refs <= $2`

	releaseBlob = `UPDATE blobs SET refs = refs - $2 WHERE hash = $1`

	selectBlob = `SELECT data FROM blobs WHERE hash = $1`
)

// putBlob stores a blob, or adds a reference to it.
func putBlob(t *tx, b blob) error {
	n, err := t.exec(shareBlob, b.hash) // without the data at first
	if err != nil || n == 1 {
		return err
	}
	_, err = t.exec(insertBlob, b.hash, b.data)
	return err
}

// released counts the references that removed turns had to blobs, by hash.
type released map[string]int

// add adds the images of a removed turn, as in the column turns.images.
func (r released) add(images string) {
	for hash := range strings.FieldsSeq(images) {
		r[hash]++
	}
}

// run removes the references, and blobs without any.
func (r released) run(t *tx) error {
	for _, hash := range slices.Sorted(maps.Keys(r)) { // always locked in the same order
		n, err := t.exec(dropBlob, hash, r[hash])
		if err == nil && n == 0 {
			_, err = t.exec(releaseBlob, hash, r[hash])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readMedia reads the data of the turns' media. missing is a turn with a file whose data isn't there.
func readMedia(t *tx, turns []*Turn) (missing *Turn, err error) {
	read := map[string][]byte{}
	for _, turn := range turns {
		media(turn, func(file *translate.Media) {
			data, known := read[file.Hash]
			if !known && err == nil {
				_, err = t.row(selectBlob, []any{file.Hash}, &data)
				read[file.Hash] = data
			}
			if file.Data = data; data == nil {
				missing = turn
			}
		})
	}
	if err != nil {
		return nil, fmt.Errorf("reading media: %w", err)
	}
	return missing, nil
}

const countTurns = `UPDATE counters SET turns = turns + $2 WHERE shard = $1`

// shards is the number of counters.
const shards = 16

// count adds to the number of turns. It should come last, because other transactions wait for the counter.
func count(t *tx, family string, more int) error {
	h := fnv.New32a()
	_, _ = h.Write([]byte(family))
	_, err := t.exec(countTurns, int64(h.Sum32()%shards), more)
	return err
}
