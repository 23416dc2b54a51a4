// Package firewall is the service that lets packets into the network or not, by
// ordered rules over all header fields.
package firewall
