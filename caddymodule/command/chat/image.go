package chat

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit"
	"github.com/lmcaddy/lmcaddy/internal/client"
	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/internal/picture"
)

// maxImage bounds an image's file in bytes, as the server does.
const maxImage = picture.MaxBytes

func readImage(path string) (client.ChatInput, error) {
	none := client.ChatInput{}
	if kit.IsBlank(path) {
		return none, errors.New("the name of the image's file is empty")
	}
	file, err := os.Stat(home.Expand(path)) // to open a pipe would wait for its other end
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return none, fmt.Errorf("there is no file %s", path)
	case err != nil:
		return none, fmt.Errorf("reading an image: %w", err)
	case file.IsDir():
		return none, fmt.Errorf("%s is a folder: name a file in it", path)
	case !file.Mode().IsRegular():
		return none, fmt.Errorf("%s isn't a file: save the image to one, and name that", path)
	case file.Size() > maxImage:
		return none, tooLarge(path)
	}
	f, err := os.Open(home.Expand(path))
	if err != nil {
		return none, fmt.Errorf("reading an image: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxImage+1))
	if err != nil {
		return none, fmt.Errorf("reading an image: %w", err)
	}
	if len(data) > maxImage { // it has grown meanwhile
		return none, tooLarge(path)
	}
	_, info, err := picture.Normalize(data) // as the server does, which doesn't know the file's name
	if err != nil {
		return none, fmt.Errorf("%s %w", path, err)
	}
	return client.ChatInput{Type: "image", DataURL: "data:" + info.Type + ";base64," + base64.StdEncoding.EncodeToString(data)}, nil
}

func tooLarge(path string) error {
	return fmt.Errorf("%s is larger than the %s that an image may have: make it smaller", path, kit.Size(maxImage))
}

// pathIn returns a path as it is typed or dropped on a terminal: in quotes, or with backslashes before its spaces.
func pathIn(text string) string {
	text = strings.TrimSpace(text)
	for _, quote := range []string{"'", `"`} {
		if len(text) >= 2 && strings.HasPrefix(text, quote) && strings.HasSuffix(text, quote) {
			return text[1 : len(text)-1]
		}
	}
	return strings.ReplaceAll(text, `\ `, " ")
}
