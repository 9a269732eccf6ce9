package store

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/translate"
)

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

// fill reads the data of the turns' images. missing is a turn with an image whose data isn't there.
func fill(ctx context.Context, q querier, turns []*Turn) (missing *Turn, err error) {
	read := map[string][]byte{}
	for _, turn := range turns {
		images(turn, func(image *translate.Image) {
			data, known := read[image.Hash]
			if !known && err == nil {
				_, err = one(ctx, q, selectBlob, []any{image.Hash}, &data)
				read[image.Hash] = data
			}
			if image.Data = data; data == nil {
				missing = turn
			}
		})
	}
	if err != nil {
		return nil, fmt.Errorf("reading images: %w", err)
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
