package jsonbody

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzSkipText holds the assembly against Go that does the same byte by byte: a text at any place of a block, and between others.
func FuzzSkipText(f *testing.F) {
	if !canSkip {
		f.Log("this processor has no AVX2: nothing is compared")
		return
	}
	for _, text := range []string{
		``, `"`, `\"`, `\\"`, `\\\"`, `\n\t\t\u0041`, `\x`, `\`, "\n", "\\\n", "\x7f", "é日本🎉", "日本\"", "\xff", "\xc0\xaf", "\xed\xa0\x80", "\xe0\x80\x80", "\xf0\x80\x80\x80", "\xf4\x90\x80\x80",
		"\xf8\x80\x80\x80\x80", "\x80", "\xe6\x97", "\xf0\x9f\x8e", "\xf0\x9f\x8e\"", strings.Repeat(`\`, 130), strings.Repeat(`\"`, 70), strings.Repeat("🎉", 40), strings.Repeat("é", 70) + "\x80",
	} {
		for _, before := range []byte{0, 1, 31, 61, 62, 63, 64} {
			f.Add([]byte(text), before, byte(0))
			f.Add([]byte(text), before, byte(100))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte, before, after byte) {
		from := skipBefore + int(before%7)
		data := bytes.Join([][]byte{[]byte("\xe6\x97\xa5234567"[:from]), bytes.Repeat([]byte{'a'}, int(before)), text, bytes.Repeat([]byte{'b'}, int(after))}, nil)
		if len(data)-from < skipBlock {
			return
		}
		for _, check := range []bool{true, false} {
			to, bad := skipText(data, from, check)
			wantTo, mayBeBad, isBad := skipSlowly(data, from, check)
			if isBad && !bad || bad && !mayBeBad || !bad && to != wantTo {
				t.Fatalf("%q from %d: to %d, bad %t; want %d, %t to %t", data, from, to, bad, wantTo, isBad, mayBeBad)
			}
		}
	})
}

// skipSlowly is skipText. Of some errors, it makes no difference whether skipText finds them: those of bytes that are looked at again.
func skipSlowly(data []byte, i int, check bool) (to int, mayBeBad, isBad bool) {
	end := i + (len(data)-i)/skipBlock*skipBlock
	whole, stopped := end, false
	for to = i; to < end && !stopped; {
		switch c := data[to]; {
		case c == '\\' && to+1 == end:
			end = to
		case c == '\\' && isShortEscape[data[to+1]]:
			to += 2
		case c == '\\', c == '"', c < ' ':
			stopped = true
		default:
			to++
		}
	}
	isBad = check && !utf8.Valid(data[i:to])
	switch last := startOfCharacter(data, to); {
	case stopped && data[to] == '\\': // what it escapes may be bad as well
		return to, isBad || check && data[to+1] >= utf8.RuneSelf, isBad
	case stopped, last < i:
		return to, isBad, isBad
	default:
		isBadBefore := check && !utf8.Valid(data[i:last])
		cut := data[startOfCharacter(data, whole):whole]
		return to, check && !utf8.Valid(data[i:whole]) && (len(cut) == 0 || utf8.FullRune(cut)) || isBadBefore, isBadBefore
	}
}

// TestScan_AnyCharacterOfBlocks: TestScan_AnyCharacter within and at the end of blocks.
func TestScan_AnyCharacterOfBlocks(t *testing.T) {
	t.Parallel()
	for first := 0xc0; first < 256; first++ {
		for second := 0x70; second < 256; second++ {
			for _, rest := range []string{"", "\x80", "\x80\x80", "\xbf\xbf", "\x80\x80\x80", "é"} {
				text := string([]byte{byte(first), byte(second)}) + rest
				for _, before := range []int{70, 16 + 64 - 1, 16 + 64 - 2, 16 + 64 - 3} {
					body := `{"a":"` + strings.Repeat("a", before) + text + strings.Repeat("b", 100) + `"}`
					if _, err := Scan([]byte(body)); (err == nil) != utf8.ValidString(text) {
						t.Fatalf("%q: %v", body, err)
					}
				}
			}
		}
	}
}

// TestStr_PartsOfLongTexts: a text longer than one call of skipText reads is read like a short one, wherever the parts end.
func TestStr_PartsOfLongTexts(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"日", `\n`, `\\`, `\u0041`, "🎉", `é\"`} {
		for before := range 9 {
			whole := `{"a":"` + strings.Repeat("a", before) + strings.Repeat(text, (2*maxSkipped+1000)/len(text))
			if _, err := Scan([]byte(whole + `"}`)); err != nil {
				t.Errorf("%q after %d: %v", text, before, err)
			}
			for _, wrong := range []string{"\x80", "\n", `\x`} {
				if _, err := Scan([]byte(whole + wrong + `"}`)); err == nil {
					t.Errorf("%q after %d, then %q: no error", text, before, wrong)
				}
			}
		}
	}
}

// TestStr_EndsNearTheEnd: a text is read once, whatever it ends in and however much follows it.
func TestStr_EndsNearTheEnd(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"é", "日", "🎉", `\n`, `\u00e9`, "a"} {
		for after := range 3 * skipBlock {
			for before := range skipBlock {
				body := `{"a":"` + strings.Repeat("a", before) + text + `","b":"` + strings.Repeat("b", after) + `"}`
				if b, err := Scan([]byte(body)); err != nil || len(b.Value("b")) != after+2 {
					t.Fatalf("%q: %v", body, err)
				}
			}
		}
	}
}
