package store

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/translate"
)

// body is the part of a turn that is stored as one value, since it isn't searched.
type body struct {
	In      []translate.Item `json:"in,omitempty"`
	Out     []translate.Item `json:"out,omitempty"`
	Request json.RawMessage  `json:"request,omitempty"`
	Usage   usage            `json:"usage,omitzero"`
}

type usage struct {
	Prompt     int `json:"prompt,omitempty"`
	Cached     int `json:"cached,omitempty"`
	Completion int `json:"completion,omitempty"`
	Reasoning  int `json:"reasoning,omitempty"`
}

// blob is an image to store.
type blob struct {
	hash string
	data []byte
}

// encode returns the body of a turn and its images, without duplicates, sorted by hash. It doesn't modify the turn.
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
	encoded, err := json.Marshal(body{In: in, Out: out, Request: t.Request, Usage: usage(t.Usage)})
	if err != nil {
		return nil, nil, &Invalid{ID: t.ID, Reason: err.Error()}
	}
	slices.SortFunc(blobs, func(a, b blob) int { return cmp.Compare(a.hash, b.hash) })
	return encoded, slices.CompactFunc(blobs, func(a, b blob) bool { return a.hash == b.hash }), nil
}

// hashed returns items with the hashes of images, and appends the images to blobs. It copies only items with images.
func hashed(items []translate.Item, blobs *[]blob) ([]translate.Item, error) {
	copied := false
	for i := range items {
		parts := items[i].Parts
		if !slices.ContainsFunc(parts, func(p translate.Part) bool { return p.Image != nil }) {
			continue
		}
		parts = slices.Clone(parts)
		for k := range parts {
			if parts[k].Image == nil {
				continue
			}
			image := *parts[k].Image
			if len(image.Data) == 0 {
				return nil, fmt.Errorf("item %d has an image without its bytes", i)
			}
			sum := sha256.Sum256(image.Data)
			image.Hash = hex.EncodeToString(sum[:])
			*blobs = append(*blobs, blob{image.Hash, image.Data})
			parts[k].Image = &image
		}
		if !copied {
			items, copied = slices.Clone(items), true
		}
		items[i].Parts = parts
	}
	return items, nil
}

// decode sets the fields of a turn from its body.
func decode(data []byte, t *Turn) error {
	var b body
	if err := json.Unmarshal(data, &b); err != nil {
		return fmt.Errorf("the stored response %q can't be read: %w", t.ID, err)
	}
	t.In, t.Out, t.Request, t.Usage = b.In, b.Out, b.Request, translate.Usage(b.Usage)
	return nil
}

// images calls do for each image of a turn.
func images(t *Turn, do func(*translate.Image)) {
	for _, items := range [][]translate.Item{t.In, t.Out} {
		for _, item := range items {
			for _, part := range item.Parts {
				if part.Image != nil {
					do(part.Image)
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
