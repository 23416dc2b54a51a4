package topology

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// names are the names of a draft's nodes that are taken, each with the number from
// which on one of that name is to be sought.
type names map[string]int

// of returns a name for a node: the wanted one as far as names may have its letters,
// else the other, with a number behind it if it is taken.
func (n names) of(wanted, other string) string {
	base := nodeNameOf(wanted)
	if base == "" {
		base = cmp.Or(nodeNameOf(other), "n")
	}
	name := base
	for k := max(2, n[base]); n[name] > 0; k++ {
		name = fmt.Sprintf("%s-%d", base, k)
		n[base] = k + 1
	}
	n[name] = 1
	return name
}

// notInNode is what becomes one hyphen of a node's name.
var notInNode = regexp.MustCompile(`[^A-Za-z0-9_]+`)

// nodeNameOf makes a node's name of any text; empty if no letter or digit of it may
// stand in one.
func nodeNameOf(s string) string {
	s = strings.Trim(notInNode.ReplaceAllString(plainLetters(s), "-"), "-_")
	if len(s) > 32 {
		s = strings.TrimRight(s[:32], "-_")
	}
	return s
}

// notDecomposed are letters of Latin alphabets that have no mark to be taken off.
var notDecomposed = strings.NewReplacer("ß", "ss", "æ", "ae", "Æ", "AE", "œ", "oe", "Œ", "OE",
	"ø", "o", "Ø", "O", "ł", "l", "Ł", "L", "đ", "d", "Đ", "D", "ı", "i", "þ", "th", "Þ", "Th", "ð", "d", "Ð", "D")

// plainLetters takes the marks off letters: "Zürich" becomes "Zurich".
func plainLetters(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return r
	}, norm.NFD.String(notDecomposed.Replace(s)))
}
