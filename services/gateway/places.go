package gateway

import (
	"github.com/weft-sdn/weft/internal/shares"
)

// client returns who takes places when a caller does.
func (c caller) client() shares.Client {
	client := shares.Client{Name: c.name}
	switch {
	case c.role >= roleAdmin:
		client.Rank = shares.Administrator
	case c.role >= roleOperate:
		client.Rank = shares.Operator
	}
	return client
}

// newPlaces returns places for clients that follow something; who holds more of them
// than others, or may do less, has to leave for others, which evicted counts.
func newPlaces(what string, most int, evicted func()) *shares.Places {
	return shares.New(shares.Limits{What: what, Places: most, Evicted: evicted})
}
