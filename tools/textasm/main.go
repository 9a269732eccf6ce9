// Command textasm writes the assembly with which package jsonbody reads text on processors with AVX2: text_amd64.s. It has a module of its own,
// so that lmcaddy doesn't depend on the assembler.
package main

import (
	. "github.com/mmcloughlin/avo/build" //nolint:revive,staticcheck // avo's programs are written in its words
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

func main() {
	skipText()
	Generate()
}

// skipText writes the function of this name. The algorithms are those of simdjson: for escapes, "Parsing Gigabytes of JSON per Second"
// (Langdale and Lemire, 2019); for UTF-8, "Validating UTF-8 In Less Than One Instruction Per Byte" (Keiser and Lemire, 2021).
func skipText() {
	TEXT("skipText", NOSPLIT, "func(data []byte, i int, check bool) (to int, bad bool)")
	Doc("skipText skips text of a JSON string from i on, in whole blocks of 64 bytes. text_amd64.go says more.")
	t := &text{
		base: Load(Param("data").Base(), GP64()), last: Load(Param("data").Len(), GP64()), at: Load(Param("i"), GP64()),
		check: Load(Param("check"), GP8()), next: GP64(), open: GP64(), escaped: GP64(), errors: GP64(), quotes: GP64(), backslashes: GP64(), stops: GP64(), beyond: GP64(),
		quote: repeated("quote", '"'), backslash: repeated("backslash", '\\'), control: repeated("control", 0x1f),
	}
	SUBQ(Imm(block), t.last)
	XORL(t.next.As32(), t.next.As32())
	XORL(t.open.As32(), t.open.As32())

	Label("block")
	CMPQ(t.at, t.last)
	JGT(LabelRef("rest"))
	t.classify()
	JNZ(LabelRef("special"))
	ADDQ(Imm(block), t.at)
	JMP(LabelRef("block"))

	Label("special")
	t.masks()
	XORL(t.errors.As32(), t.errors.As32())
	ORQ(t.beyond, t.open)
	JZ(LabelRef("ascii"))
	MOVQ(t.beyond, t.open)
	SHRQ(Imm(63), t.open)
	TESTB(t.check, t.check)
	JZ(LabelRef("ascii"))
	t.checkUTF8()

	Label("ascii")
	XORL(t.escaped.As32(), t.escaped.As32())
	either := GP64()
	MOVQ(t.backslashes, either)
	ORQ(t.next, either)
	JZ(LabelRef("stops"))
	t.skipEscapes()

	Label("stops")
	TESTQ(t.stops, t.stops)
	JNZ(LabelRef("stop"))
	TESTQ(t.errors, t.errors)
	JNZ(LabelRef("bad"))
	ADDQ(Imm(block), t.at)
	JMP(LabelRef("block"))

	Label("stop")
	Comment("What follows the first stop isn't the text's. A bad escape begins one byte before its stop.")
	upTo, n := GP64(), GP64()
	BLSMSKQ(t.stops, upTo)
	TESTQ(upTo, t.errors)
	JNZ(LabelRef("bad"))
	TZCNTQ(t.stops, n)
	BTQ(n, t.escaped)
	SBBQ(Imm(0), n)
	ADDQ(n, t.at)
	t.ret(0)

	Label("rest")
	Comment("A backslash at the end of the last block is read again.")
	SUBQ(t.next, t.at)
	t.ret(0)

	Label("bad")
	t.ret(1)
}

// block is how many bytes are looked at together: as many as a mask has bits.
const block = 64

// text is the state of skipText. Each bit of a mask stands for a byte of the block.
type text struct {
	base, last, at            Register  // the data, the last position of a block, and the position
	check                     Register  // whether characters beyond ASCII are checked
	next                      GPVirtual // 1 if the first byte of the block is escaped
	open                      GPVirtual // 1 if the block before may end within a character, so that this one may show that it is wrong
	escaped, errors           GPVirtual // masks: bytes after a backslash, and those by which UTF-8 is known to be invalid
	quotes, backslashes       GPVirtual // masks
	stops                     GPVirtual // mask: of control characters, then of all that ends the skipping
	beyond                    GPVirtual // mask: of bytes beyond ASCII
	quote, backslash, control VecVirtual
	halves                    [2]half
}

// half is a half of the block.
type half struct{ bytes, quotes, backslashes, controls VecVirtual }

// classify loads a block. The zero flag is set if it is plain ASCII, and nothing of the block before goes on.
func (t *text) classify() {
	var special VecVirtual
	for i := range t.halves {
		h := half{YMM(), YMM(), YMM(), YMM()}
		VMOVDQU(t.mem(32*i), h.bytes)
		VPCMPEQB(t.quote, h.bytes, h.quotes)
		VPCMPEQB(t.backslash, h.bytes, h.backslashes)
		VPMINUB(t.control, h.bytes, h.controls)
		VPCMPEQB(h.controls, h.bytes, h.controls)
		some := YMM()
		VPOR(h.quotes, h.bytes, some)
		VPOR(h.backslashes, some, some)
		VPOR(h.controls, some, some)
		if i > 0 {
			VPOR(special, some, some)
		}
		special, t.halves[i] = some, h
	}
	mask := GP32()
	VPMOVMSKB(special, mask)
	ORL(t.next.As32(), mask)
	ORL(t.open.As32(), mask)
}

func (t *text) mem(offset int) Mem { return Mem{Base: t.base, Index: t.at, Scale: 1, Disp: offset} }

func (t *text) masks() {
	low, high := t.halves[0], t.halves[1]
	maskOf(low.quotes, high.quotes, t.quotes)
	maskOf(low.backslashes, high.backslashes, t.backslashes)
	maskOf(low.controls, high.controls, t.stops)
	maskOf(low.bytes, high.bytes, t.beyond)
	ORQ(t.quotes, t.stops)
}

// maskOf makes the mask of the highest bit of each byte.
func maskOf(low, high VecVirtual, mask GPVirtual) {
	upper := GP64()
	VPMOVMSKB(low, mask.As32())
	VPMOVMSKB(high, upper.As32())
	SHLQ(Imm(32), upper)
	ORQ(upper, mask)
}

// skipEscapes finds the bytes that are escaped: those after a row of backslashes of odd length. Such a quote is no stop, and a byte that makes no
// escape of two bytes is one.
func (t *text) skipEscapes() {
	const odd = 0xaaaaaaaaaaaaaaaa
	odds, begins, code := GP64(), GP64(), GP64()
	MOVQ(U64(odd), odds)
	ANDNQ(t.backslashes, t.next, begins)
	LEAQ(Mem{Base: begins, Index: begins, Scale: 1}, code)
	ORQ(odds, code)
	SUBQ(begins, code)
	XORQ(odds, code)
	MOVQ(t.backslashes, t.escaped)
	ORQ(t.next, t.escaped)
	XORQ(code, t.escaped)
	ANDQ(t.backslashes, code)
	MOVQ(code, t.next)
	SHRQ(Imm(63), t.next)

	others := GP64()
	maskOf(t.notEscapes(t.halves[0]), t.notEscapes(t.halves[1]), others)
	ANDNQ(t.stops, t.escaped, t.stops)
	ANDQ(t.escaped, others)
	ORQ(others, t.stops)
}

// notEscapes finds the bytes that make no escape of two bytes with a backslash before them. The two halves of a byte are looked up, and
// each bit stands for an upper half.
func (t *text) notEscapes(h half) VecVirtual {
	const of2, of5, of6, of7 = 1, 2, 4, 8
	upper := table("escape_upper", [16]byte{2: of2, 5: of5, 6: of6, 7: of7})
	lower := table("escape_lower", [16]byte{'"' & 15: of2 | of6 | of7, '/' & 15: of2, '\\' & 15: of5, 'f' & 15: of6, 'n' & 15: of6, 't' & 15: of7})
	found, none := YMM(), YMM()
	VPSHUFB(upperHalves(h.bytes), upper, upper)
	VPSHUFB(h.bytes, lower, found)
	VPAND(upper, found, found)
	VPXOR(none, none, none)
	VPCMPEQB(none, found, found)
	return found
}

// checkUTF8 makes the mask of errors. Errors of a character may be found at any of its bytes, or at the one after it.
func (t *text) checkUTF8() {
	maskOf(t.utf8Errors(0), t.utf8Errors(1), t.errors)
	NOTQ(t.errors)
}

// utf8Errors marks the bytes of a half at which nothing is wrong.
func (t *text) utf8Errors(i int) VecVirtual {
	const (
		tooShort     = 1 << iota // a first byte without one that goes on
		tooLong                  // a byte that goes on after ASCII
		overlong3                // a character of three bytes that has a shorter form
		tooLarge                 // a character after the last one
		surrogate                // half of a pair of UTF-16
		overlong2                // a character of two bytes that is ASCII
		tooLarge1000             // a character long after the last one
		twoGoOn                  // two bytes that go on, which is right after the first byte of three or four
		overlong4    = tooLarge1000
		carry        = tooShort | tooLong | twoGoOn
	)
	bytes := t.halves[i].bytes
	prev := YMM()
	VMOVDQU(t.mem(32*i-1), prev)
	first := table("utf8_first", [16]byte{
		tooLong, tooLong, tooLong, tooLong, tooLong, tooLong, tooLong, tooLong, twoGoOn, twoGoOn, twoGoOn, twoGoOn,
		tooShort | overlong2, tooShort, tooShort | overlong3 | surrogate, tooShort | tooLarge | tooLarge1000 | overlong4,
	})
	second := table("utf8_second", [16]byte{
		carry | overlong3 | overlong2 | overlong4, carry | overlong2, carry, carry, carry | tooLarge,
		carry | tooLarge | tooLarge1000, carry | tooLarge | tooLarge1000, carry | tooLarge | tooLarge1000, carry | tooLarge | tooLarge1000,
		carry | tooLarge | tooLarge1000, carry | tooLarge | tooLarge1000, carry | tooLarge | tooLarge1000, carry | tooLarge | tooLarge1000,
		carry | tooLarge | tooLarge1000 | surrogate, carry | tooLarge | tooLarge1000, carry | tooLarge | tooLarge1000,
	})
	third := table("utf8_third", [16]byte{
		tooShort, tooShort, tooShort, tooShort, tooShort, tooShort, tooShort, tooShort,
		tooLong | overlong2 | twoGoOn | overlong3 | tooLarge1000 | overlong4, tooLong | overlong2 | twoGoOn | overlong3 | tooLarge,
		tooLong | overlong2 | twoGoOn | surrogate | tooLarge, tooLong | overlong2 | twoGoOn | surrogate | tooLarge,
		tooShort, tooShort, tooShort, tooShort,
	})
	VPSHUFB(upperHalves(prev), first, first)
	VPAND(nibbles(), prev, prev)
	VPSHUFB(prev, second, second)
	VPSHUFB(upperHalves(bytes), third, third)
	wrong := first
	VPAND(second, wrong, wrong)
	VPAND(third, wrong, wrong)

	Comment("Two bytes that go on are right where the byte two before begins a character of three bytes, or the one three before one of four.")
	two, three := YMM(), YMM()
	VMOVDQU(t.mem(32*i-2), two)
	VMOVDQU(t.mem(32*i-3), three)
	VPSUBUSB(repeated("three", 0xe0-0x80), two, two)
	VPSUBUSB(repeated("four", 0xf0-0x80), three, three)
	VPOR(two, three, three)
	VPAND(repeated("highest", 0x80), three, three)
	VPXOR(three, wrong, wrong)
	none := YMM()
	VPXOR(none, none, none)
	VPCMPEQB(none, wrong, wrong)
	return wrong
}

// upperHalves returns the upper four bits of each byte.
func upperHalves(bytes VecVirtual) VecVirtual {
	upper := YMM()
	VPSRLW(Imm(4), bytes, upper)
	VPAND(nibbles(), upper, upper)
	return upper
}

func nibbles() VecVirtual { return repeated("nibble", 0x0f) }

// repeated loads a vector of one byte.
func repeated(name string, value byte) VecVirtual {
	var all [16]byte
	for i := range all {
		all[i] = value
	}
	return table(name, all)
}

// tables are the constants by their names.
var tables = map[string]Mem{}

// table loads a table of sixteen bytes into both halves of a vector.
func table(name string, values [16]byte) VecVirtual {
	mem, ok := tables[name]
	if !ok {
		mem = GLOBL(name, RODATA|NOPTR)
		DATA(0, String(values[:]))
		tables[name] = mem
	}
	loaded := YMM()
	VBROADCASTI128(mem, loaded)
	return loaded
}

func (t *text) ret(bad uint64) {
	Store(t.at, ReturnIndex(0))
	flag := GP8()
	MOVB(Imm(bad), flag)
	Store(flag, ReturnIndex(1))
	VZEROUPPER()
	RET()
}
