package oftest

import (
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

// meter is a meter with its counters and, for each band, a token bucket.
type meter struct {
	flow.Meter
	since   time.Time
	packets openflow.Counter
	dropped []openflow.Counter
	tokens  []float64 // in the unit of the meter: kilobits or packets
	filled  time.Time
}

const (
	meterMax   = 0xffff0000 // OFPM_MAX
	meterFlags = openflow.MeterFlagKbps | openflow.MeterFlagPktps | openflow.MeterFlagBurst | openflow.MeterFlagStats
	bandsMax   = 8
)

// meterMod handles a meter-mod (§6.6, §7.3.4.4). Bands drop, and nothing else.
func (ct *contents) meterMod(c *conn, msg []byte) error {
	var m flow.MeterMod
	if err := c.version.DecodeMeterMod(msg, &m); err != nil {
		return err
	}
	failed := func(code uint16) error { return refuse(openflow.ErrMeterModFailed, code) }
	id := m.Meter.ID
	if m.Command == flow.Delete {
		all := id == flow.MeterAll
		ct.removeUsing(func(e *entry) bool { return e.Meter != 0 && (all || e.Meter == id) }, openflow.RemovedDelete)
		for other, m := range ct.meters {
			if all || other == id {
				ct.changed("meter", m.Meter, nil)
			}
		}
		if all {
			clear(ct.meters)
		} else {
			delete(ct.meters, id)
		}
		return nil
	}
	old := ct.meters[id]
	switch {
	case id == 0 || id > meterMax:
		return failed(openflow.MeterModFailedInvalidMeter)
	case m.Command == flow.Add && old != nil:
		return failed(openflow.MeterModFailedMeterExists)
	case m.Command == flow.Modify && old == nil:
		return failed(openflow.MeterModFailedUnknownMeter)
	case m.Command == flow.Add && ct.cfg.MaxMeters > 0 && len(ct.meters) >= ct.cfg.MaxMeters:
		return failed(openflow.MeterModFailedOutOfMeters)
	case m.Meter.Flags&^meterFlags != 0 || (m.Meter.Flags&openflow.MeterFlagKbps != 0) == (m.Meter.Flags&openflow.MeterFlagPktps != 0):
		return failed(openflow.MeterModFailedBadFlags)
	case len(m.Meter.Bands) > bandsMax:
		return failed(openflow.MeterModFailedOutOfBands)
	}
	for _, b := range m.Meter.Bands {
		switch {
		case b.Kind != flow.MeterDrop:
			return failed(openflow.MeterModFailedBadBand)
		case b.Rate == 0:
			return failed(openflow.MeterModFailedBadRate)
		}
	}
	n := &meter{Meter: m.Meter, since: ct.now, filled: ct.now, dropped: make([]openflow.Counter, len(m.Meter.Bands))}
	if old != nil {
		n.since, n.packets = old.since, old.packets
		ct.changed("meter", old.Meter, n.Meter)
	} else {
		ct.changed("meter", nil, n.Meter)
	}
	for i := range n.Bands {
		n.tokens = append(n.tokens, n.capacity(i))
	}
	ct.meters[id] = n
	return nil
}

// capacity is how much a band lets through at once: its burst size, or what
// its rate gives in a second.
func (m *meter) capacity(band int) float64 {
	if b := &m.Bands[band]; m.Flags&openflow.MeterFlagBurst != 0 && b.BurstSize > 0 {
		return float64(b.BurstSize)
	}
	return float64(m.Bands[band].Rate)
}

// passMeter measures a packet; false is that it is dropped. Of the bands whose
// rate is exceeded the one of the highest rate counts (§5.7.1).
func (ct *contents) passMeter(id uint32, octets int) bool {
	m := ct.meters[id]
	if m == nil {
		return true
	}
	m.packets.Packets++
	m.packets.Bytes += uint64(octets)
	cost := 1.0
	if m.Flags&openflow.MeterFlagKbps != 0 {
		cost = float64(octets) * 8 / 1000
	}
	elapsed := ct.now.Sub(m.filled).Seconds()
	m.filled = ct.now
	over := -1
	for i := range m.Bands {
		m.tokens[i] = min(m.capacity(i), m.tokens[i]+elapsed*float64(m.Bands[i].Rate))
		if m.tokens[i] >= cost {
			m.tokens[i] -= cost
		} else if over < 0 || m.Bands[i].Rate > m.Bands[over].Rate {
			over = i
		}
	}
	if over < 0 {
		return true
	}
	m.dropped[over].Packets++
	m.dropped[over].Bytes += uint64(octets)
	return false
}
