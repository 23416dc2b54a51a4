package cli

import (
	"fmt"
	"io"
	"strings"
	"unicode"
)

// Plain returns a text in which whatever is no character to look at stands as
// its number, \u001b for instance: what comes from elsewhere forges no lines of
// a table and commands no terminal.
func Plain(text string) string {
	if !strings.ContainsFunc(text, Hidden) {
		return strings.ToValidUTF8(text, "\ufffd")
	}
	var b strings.Builder
	for _, r := range text { // octets that are no UTF-8 are U+FFFD
		switch {
		case !Hidden(r):
			b.WriteRune(r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(unicode.ReplacementChar)
		}
	}
	return b.String()
}

func Hidden(r rune) bool { return !unicode.IsPrint(r) }

// PlainWriter writes lines of text as plain has them, but for tabs, which stay.
type PlainWriter struct{ io.Writer }

// Write writes whole lines (io.Writer): a character that is written in two
// parts would not be seen as one.
func (w PlainWriter) Write(p []byte) (int, error) {
	var b strings.Builder
	for line := range strings.Lines(string(p)) {
		text, ended := strings.CutSuffix(line, "\n")
		for i, part := range strings.Split(text, "\t") {
			if i > 0 {
				b.WriteByte('\t')
			}
			b.WriteString(Plain(part))
		}
		if ended {
			b.WriteByte('\n')
		}
	}
	if _, err := io.WriteString(w.Writer, b.String()); err != nil {
		return 0, err
	}
	return len(p), nil
}
