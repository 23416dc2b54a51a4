// Package nf is a simulated 5G core: an NRF of TS 29.510, and AMF, SMF, AUSF, UDM
// and PCF that register with it, discover each other and exchange the messages
// of attachments and detachments, and a UDR for a real UDM. They are there to try and to measure what
// carries their messages; no radio, no cryptography and no subscriber is behind
// them, and each answer says that it is simulated.
//
// The command weft nf, experiments and tests import it.
package nf
