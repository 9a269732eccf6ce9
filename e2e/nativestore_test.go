package e2e

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// thinkBlock is the number of tokens that the shipped model's template writes if the model shouldn't think. They precede the
// answer, but aren't in the prompts of later turns.
const thinkBlock = 4

// TestNativeChat_GoingOnIsQuick: for a later turn, the engine has cached the prompt before except for its think block, so it
// processes only that turn's answer and the new message. This also holds when conversations take turns.
func TestNativeChat_GoingOnIsQuick(t *testing.T) {
	t.Parallel()
	for _, parallel := range []string{"parallel 4", "parallel 1"} {
		t.Run(parallel, func(t *testing.T) {
			s := harness.Start(harness.NewHome(t), harness.Config{Engine: []string{parallel}})
			last := map[string]string{"Ada": "", "Bob": "", "Eve": ""}
			before := map[string]int64{}
			for turn := range 5 {
				for _, name := range []string{"Ada", "Bob", "Eve"} {
					said := whoAmI
					if turn == 0 {
						said = "My name is " + name + "."
					}
					request := harness.NativeAsk(said).With("reasoning", "off")
					if turn == 0 {
						request["system_prompt"] = strings.Repeat("You speak with "+name+". ", 20)
					} else {
						request = request.After(last[name])
					}
					body := s.NativeChat(request)
					last[name] = body.Get("response_id").Str
					usage := s.Get(harness.ResponsesPath+last[name]).Want(t, http.StatusOK).Get("usage")
					prompt, cached := usage.Get("input_tokens").Int(), usage.Get("cached_input_tokens").Int()
					if turn > 0 && cached != before[name]-thinkBlock {
						t.Errorf("%s, turn %d: %d of %d tokens were there, where the turn before had %d", name, turn, cached, prompt, before[name])
					}
					before[name] = prompt
				}
			}
		})
	}
}

// picture returns an image of one colour, as a data URL.
func picture(t *testing.T, c color.Color) harness.Fields {
	t.Helper()
	img := image.NewRGBA(image.Rect(0, 0, 64, 64))
	draw.Draw(img, img.Bounds(), image.NewUniform(c), image.Point{}, draw.Src)
	var encoded bytes.Buffer
	if err := png.Encode(&encoded, img); err != nil {
		t.Fatal(err)
	}
	return harness.Fields{"type": "image", "data_url": "data:image/png;base64," + base64.StdEncoding.EncodeToString(encoded.Bytes())}
}

const visionModel = "lmcaddy/tinyvision"

func TestNativeChat_SeesImages(t *testing.T) {
	t.Parallel()
	home := withVision(t)
	s := harness.Start(home, harness.Config{})
	say := harness.Fields{"type": "text", "content": "Say:"}
	look := func(c color.Color) harness.Fields {
		return harness.NativeAsk("").With("model", visionModel).With("input", []any{say, picture(t, c)})
	}
	red := wantSaid(t, s.NativeChat(look(color.RGBA{R: 255, A: 255})), "red")
	st := s.NativeStream(look(color.RGBA{B: 255, A: 255}))
	wantSaid(t, st.Result, "blue")
	if status := s.Stop(syscall.SIGINT, harness.Patience); status != 0 {
		t.Errorf("status %d", status)
	}

	s = harness.Start(home, harness.Config{}) // it finds the image in the store
	wantSaid(t, s.NativeChat(look(color.RGBA{G: 255, A: 255}).After(red)), "green")
	reply := s.Get(harness.ResponsesPath+red).Want(t, http.StatusOK)
	if got, want := reply.Get("input.1.data_url").Str, picture(t, color.RGBA{R: 255, A: 255})["data_url"]; got != want {
		t.Errorf("the image that is stored is %.100s…", got)
	}
	refused := s.Post(harness.NativeChatPath, harness.NativeAsk("Hello").After(red)).Want(t, http.StatusBadRequest)
	if refused.Get("error.code").Str != "unsupported_content" || refused.Get("error.param").Str != "model" {
		t.Errorf("by a model without vision: %s", refused.Body)
	}
}

// TestNativeChat_WhatWasAnsweredOutlivesACrash: lmcaddy is killed several times during many chats. Each response whose end a
// client has received is there afterwards.
func TestNativeChat_WhatWasAnsweredOutlivesACrash(t *testing.T) {
	t.Parallel()
	const clients = 200
	home, config := harness.NewHome(t), harness.Config{Port: harness.FreePort(t)}
	var noted []string
	for _, enough := range []int{10, 60, 120} {
		s := harness.Start(home, config)
		s.Chat(harness.Ask(capital)) // the model is loaded
		ids := make(chan string, clients)
		var wg sync.WaitGroup
		for i := range clients {
			wg.Go(func() {
				ids <- s.StreamForID(harness.NativeAsk(fmt.Sprintf("Count to %d", i%30+1)).With("max_output_tokens", 8))
			})
		}
		kept := 0
		for ; kept < enough; kept++ {
			id := harness.Wait(t, "a chat has ended", ids)
			if id == "" {
				t.Fatal("a chat failed before lmcaddy was killed")
			}
			noted = append(noted, id)
		}
		s.Kill()
		wg.Wait()
		close(ids)
		for id := range ids {
			if id != "" {
				noted = append(noted, id)
				kept++
			}
		}
		if kept == clients {
			t.Error("all chats had ended before lmcaddy was killed")
		}
		t.Logf("%d of %d chats had ended", kept, clients)
	}
	s := harness.Start(home, config)
	for _, id := range noted {
		if reply := s.Get(harness.ResponsesPath + id); reply.Status != http.StatusOK || reply.Get("response_id").Str != id {
			t.Errorf("%s: %d %s", id, reply.Status, reply.Body)
		}
	}
}

func TestNativeChat_ConversationsInPostgreSQL(t *testing.T) {
	t.Parallel()
	config := harness.Config{LM: []string{"store postgres " + harness.Postgres(t)}}
	home := harness.NewHome(t)
	s := harness.Start(home, config)
	first := wantSaid(t, s.NativeChat(harness.NativeAsk("My name is Ada.")), "Nice to meet you, Ada!")
	wantSaid(t, s.NativeStream(harness.NativeAsk(whoAmI).After(first)).Result, "Your name is Ada.")
	if status := s.Stop(syscall.SIGINT, harness.Patience); status != 0 {
		t.Errorf("status %d", status)
	}
	if _, err := os.Stat(filepath.Join(home.Dir, "lmcaddy.db")); err == nil {
		t.Error("there is an SQLite file, too")
	}

	s = harness.Start(harness.NewHome(t), config) // like another machine, with the same database
	wantSaid(t, s.NativeChat(harness.NativeAsk(whoAmI).After(first)), "Your name is Ada.")
	s.Do(http.MethodDelete, harness.ResponsesPath+first, nil).Want(t, http.StatusOK)
	s.Get(harness.ResponsesPath+first).Want(t, http.StatusNotFound)
}
