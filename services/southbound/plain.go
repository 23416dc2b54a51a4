package southbound

import (
	"strings"
	"unicode"

	"github.com/weft-sdn/weft/openflow"
)

// plain returns a text of a switch, such as the name of a port, as it is passed
// on: whatever cannot be printed, and octets that are no UTF-8, is U+FFFD. So it
// fits into every message and every line of a table or a log, and commands no
// terminal.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// plainDesc is plain for all texts by which a switch describes itself.
func plainDesc(d openflow.Desc) openflow.Desc {
	return openflow.Desc{
		Manufacturer: plain(d.Manufacturer), Hardware: plain(d.Hardware), Software: plain(d.Software),
		Serial: plain(d.Serial), Datapath: plain(d.Datapath),
	}
}
