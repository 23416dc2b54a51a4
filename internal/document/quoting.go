package document

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// The bounds of error texts, in characters: of a quotation, of a word, and of
// the whole.
const (
	maxQuoted  = 80
	maxWord    = 120
	maxMessage = 4096
)

// Wording returns what is wrong with a text, as fmt.Sprintf, Shortened: the text may be
// anybody's.
func Wording(format string, args ...any) string { return Shortened(fmt.Sprintf(format, args...)) }

// Shortened returns the text of an error with at most maxQuoted characters of
// each quotation, and of each word that is too long to be ours, so that it
// repeats only a part of the input.
func Shortened(text string) string {
	if len(text) <= maxQuoted {
		return text
	}
	var b strings.Builder
	for text != "" && b.Len() < maxMessage {
		end := 0
		if text[0] == '"' {
			end = quoteEnd(text)
			b.WriteString(cut(text[:end], maxQuoted+2, `…"`))
		} else {
			end = strings.IndexAny(text, " \n\"")
			if end == 0 {
				end = 1
			} else if end < 0 {
				end = len(text)
			}
			b.WriteString(cut(text[:end], maxWord, "…"))
		}
		text = text[end:]
	}
	if text != "" {
		b.WriteString("…")
	}
	return b.String()
}

// quoteEnd returns the end of the quotation at the beginning of a text.
func quoteEnd(text string) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

// cut returns at most that many characters of a text, with an ending if it
// omits some.
func cut(text string, most int, ending string) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	n := 0
	for i := range text {
		if n == maxQuoted {
			return text[:i] + ending
		}
		n++
	}
	return text
}
