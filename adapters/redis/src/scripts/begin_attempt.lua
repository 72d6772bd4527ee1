-- Counts an attempt for KEYS[1] as failed unless it comes too early. ARGV: the time, the time for which failures are
-- kept, the expiry margin, then the delays after 0, 1, 2 and more failures; all in milliseconds. Returns whether the
-- attempt is refused, the number of failures before it, the time until the next one is allowed, and whether it is the
-- first refusal.
local now, retention, margin = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local attempts = redis.call('HMGET', KEYS[1], 'count', 'last', 'refused')
local count, last = tonumber(attempts[1]), tonumber(attempts[2])
if not count or now - last >= retention then
    count, last = 0, nil
end
if last then
    local delay = tonumber(ARGV[math.min(4 + count, #ARGV)])
    if now < last + delay then
        local is_first = redis.call('HSET', KEYS[1], 'refused', 1)
        return { 1, count, last + delay - now, is_first }
    end
end
redis.call('HSET', KEYS[1], 'count', count + 1, 'last', now)
redis.call('HDEL', KEYS[1], 'refused')
redis.call('PEXPIRE', KEYS[1], retention + margin)
return { 0, 0, 0, 0 }
