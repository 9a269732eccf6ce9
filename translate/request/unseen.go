package request

import (
	"slices"

	"github.com/lmcaddy/lmcaddy/translate"
)

// Medium is a kind of content besides text.
type Medium string

// The media that clients send. Engines take images, if the model has vision.
const (
	MediumImage    Medium = "image"
	MediumDocument Medium = "document"
	MediumAudio    Medium = "audio"
	MediumVideo    Medium = "video"
)

// omitted says why the medium's content was left out, for the model.
func (m Medium) omitted() string {
	if m == MediumImage {
		return "[image omitted: this model can't see images]"
	}
	return "[" + string(m) + " omitted: this model can only read text]"
}

// refused says what to do about content of the medium, for the client.
func (m Medium) refused() string {
	if m == MediumImage {
		return "is an image, and the model does not take images: choose a model with vision, or send none. " + leaveOut
	}
	return "is of the kind " + string(m) + ", which this server does not take: send text or images. " + leaveOut
}

const leaveOut = `The server's option "unsupported_content omit" leaves such content out, with a note to the model.`

// Unseen returns the text that a model gets in place of content at a place of a request that it can't take. It is an error unless the
// operator has such content left out. named is the place as the error's sentence begins with it.
func (c *Caps) Unseen(where, named string, m Medium) (note string, _ *translate.Error) {
	if c.OmitsUnseen {
		return m.omitted(), nil
	}
	return "", translate.Invalid("unsupported_content", where, named+" "+m.refused())
}

// Seen returns the items of a stored conversation as the model can take them: with notes in place of images if it can't see any. It is an
// error unless the operator has images left out. The items themselves aren't changed.
func (c *Caps) Seen(model string, items []translate.Item) ([]translate.Item, *translate.Error) {
	if c.Vision {
		return items, nil
	}
	isCopy := false
	for i := range items {
		if !translate.HasImage(items[i].Parts) {
			continue
		}
		if !c.OmitsUnseen {
			return nil, translate.Invalid("unsupported_content", "model",
				"The conversation has images, which the model "+model+" does not take: choose a model with vision. "+leaveOut)
		}
		if !isCopy {
			items, isCopy = slices.Clone(items), true
		}
		items[i].Parts = slices.Clone(items[i].Parts)
		for n := range items[i].Parts {
			if part := &items[i].Parts[n]; part.Image != nil {
				*part = translate.Part{Text: MediumImage.omitted()}
			}
		}
	}
	return items, nil
}
