package session

import (
	"strings"
	"unicode"

	"github.com/weft-sdn/weft/openflow"
)

// Printable returns a text from a switch, such as the name of a port, in a safe
// form: it replaces unprintable characters and invalid UTF-8 by U+FFFD. So the
// text fits into every message and every line of a table or a log, and cannot
// control a terminal.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// PrintableDesc applies plain to all texts in a switch's description.
func PrintableDesc(d openflow.Desc) openflow.Desc {
	return openflow.Desc{
		Manufacturer: Printable(d.Manufacturer), Hardware: Printable(d.Hardware), Software: Printable(d.Software),
		Serial: Printable(d.Serial), Datapath: Printable(d.Datapath),
	}
}
