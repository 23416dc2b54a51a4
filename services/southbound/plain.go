package southbound

import (
	"strings"
	"unicode"

	"github.com/weft-sdn/weft/openflow"
)

// plain returns a text from a switch, such as the name of a port, in a safe
// form: it replaces unprintable characters and invalid UTF-8 by U+FFFD. So the
// text fits into every message and every line of a table or a log, and cannot
// control a terminal.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// plainDesc applies plain to all texts in a switch's description.
func plainDesc(d openflow.Desc) openflow.Desc {
	return openflow.Desc{
		Manufacturer: plain(d.Manufacturer), Hardware: plain(d.Hardware), Software: plain(d.Software),
		Serial: plain(d.Serial), Datapath: plain(d.Datapath),
	}
}
