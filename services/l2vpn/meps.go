package l2vpn

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weft-sdn/weft/services/l2vpn/cfm"
)

// mepTick is the time between two looks at what maintenance end points send, and mepParts which part of
// l2vpn.probe_rate is theirs.
const (
	mepTick  = 100 * time.Millisecond
	mepParts = 5
)

// A mep is a maintenance end point of an end, which faces the customer.
type mep struct {
	at   end
	text string // as parseMEP reads it
	cfm.Config
}

// parseMEP reads END=MEPID,level=N,ma=NAME, with ,md=NAME and ,interval=TIME behind; meg=NAME may be in place of ma.
func parseMEP(text string) (m mep, err error) {
	wrong := func(format string, args ...any) (mep, error) {
		return mep{}, fmt.Errorf("mep %.160q: "+format, append([]any{text}, args...)...)
	}
	at, rest, is := strings.Cut(text, "=")
	if !is {
		return wrong("want END=MEPID,level=N,ma=NAME")
	}
	if m.at, err = parseEnd(at); err != nil {
		return wrong("%w", err)
	}
	parts := strings.Split(rest, ",")
	id, err := strconv.ParseUint(parts[0], 10, 16)
	if err != nil || id < 1 || id > 8191 {
		return wrong("identifier %.20q: want 1 to 8191", parts[0])
	}
	m.ID, m.Interval = uint16(id), time.Second
	domain, name, group, level := "", "", "", uint64(8)
	for _, part := range parts[1:] {
		key, value, _ := strings.Cut(part, "=")
		switch key {
		case "level":
			level, err = strconv.ParseUint(value, 10, 3)
			if err != nil {
				return wrong("level %.20q: want 0 to 7", value)
			}
		case "ma":
			name = value
		case "md":
			domain = value
		case "meg":
			group = value
		case "interval":
			if m.Interval, err = time.ParseDuration(value); err != nil || !cfm.IntervalOK(m.Interval) {
				return wrong("interval %.20q: want 1s, 10s or 1m", value)
			}
		default:
			return wrong("%.20q: want level, ma, md, meg or interval", key)
		}
	}
	if level > 7 {
		return wrong("want a level, 0 to 7")
	}
	m.Level = uint8(level)
	switch {
	case group != "" && domain+name != "":
		return wrong("want ma, or meg, which is a name of its own")
	case group != "":
		m.MAID, err = cfm.NewMEG(group)
		m.text = fmt.Sprintf("%v=%d,level=%d,meg=%s", m.at, id, level, group)
	default:
		m.MAID, err = cfm.NewMAID(domain, name)
		m.text = fmt.Sprintf("%v=%d,level=%d,ma=%s", m.at, id, level, name)
	}
	if err != nil {
		return wrong("%w", err)
	}
	if domain != "" {
		m.text += ",md=" + domain
	}
	switch m.Interval {
	case time.Second:
	case time.Minute:
		m.text += ",interval=1m"
	default:
		m.text += ",interval=" + m.Interval.String()
	}
	return m, nil
}
