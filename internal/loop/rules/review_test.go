package rules_test

import (
	"math/rand"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/fault"
	"pawl/internal/loop"
	"pawl/internal/loop/rules"
)

// TestE3_OnlyWhatWasApprovedIsApplied: each refusal names which of the three reasons it is.
func TestE3_OnlyWhatWasApprovedIsApplied(t *testing.T) {
	other := strings.Repeat("f", 64)
	for _, c := range []struct {
		name, state, hash string
		code              fault.Code
	}{
		{"approved", rules.Approved, hash, ""},
		{"approved, by sixteen digits", rules.Approved, hash[:16], ""},
		{"approved, in capitals", rules.Approved, strings.ToUpper(hash), ""},
		{"applied already", rules.Applied, hash, ""},
		{"without review", rules.Open, hash, fault.ReviewMissing},
		{"after rejection", rules.Rejected, hash, fault.ReviewRejected},
		{"another hash", rules.Approved, other, fault.HashMismatch},
		{"too short a hash", rules.Approved, hash[:15], fault.HashMismatch},
		{"no hash", rules.Approved, "", fault.HashMismatch},
		{"more than the hash", rules.Approved, hash + "0", fault.HashMismatch},
		{"another hash, without review", rules.Open, other, fault.HashMismatch},
		{"a state that nobody knows", "APPROVED", hash, fault.ReviewMissing},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := rules.MayApply(&loop.Proposal{Hash: hash, State: c.state}, c.hash)
			require.Equal(t, c.code, fault.CodeOf(err))
			if err != nil {
				require.NotEmpty(t, err.(*fault.Error).Advice())
			}
		})
	}
	require.Equal(t, fault.PreconditionFailed, fault.CodeOf(rules.MayApply(nil, hash)))
}

func TestE3_ReviewCountsForItsHashAlone(t *testing.T) {
	for _, c := range []struct {
		from    string
		approve bool
		to      string
		code    fault.Code
	}{
		{rules.Open, true, rules.Approved, ""},
		{rules.Open, false, rules.Rejected, ""},
		{rules.Approved, true, rules.Approved, ""},
		{rules.Approved, false, rules.Rejected, ""},
		{rules.Rejected, false, rules.Rejected, ""},
		{rules.Rejected, true, "", fault.ReviewRejected},
		{rules.Applied, true, rules.Applied, ""},
		{rules.Applied, false, "", fault.GateClosed},
	} {
		to, err := rules.Review(&loop.Proposal{Hash: hash, State: c.from}, hash[:20], c.approve)
		require.Equal(t, c.code, fault.CodeOf(err), "%+v", c)
		require.Equal(t, c.to, to, "%+v", c)
		_, err = rules.Review(&loop.Proposal{Hash: hash, State: c.from}, strings.Repeat("0", 64), c.approve)
		require.Equal(t, fault.HashMismatch, fault.CodeOf(err))
	}
}

// TestE3_NoMixOfAnswersAppliesWhatNobodyApproved throws random answers at random proposals.
func TestE3_NoMixOfAnswersAppliesWhatNobodyApproved(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	hashes := []string{hash, hash[:16], hash[:15], strings.Repeat("f", 64), ""}
	for range 2000 {
		p := loop.Proposal{Hash: hash, State: rules.Open}
		approved := false
		for range 1 + random.Intn(5) {
			given, yes := hashes[random.Intn(len(hashes))], random.Intn(2) == 0
			state, err := rules.Review(&p, given, yes)
			if err != nil {
				continue
			}
			require.True(t, len(given) >= 16 && strings.HasPrefix(hash, given))
			p.State, approved = state, yes
		}
		if rules.MayApply(&p, hash) == nil {
			require.True(t, approved)
		}
	}
}
