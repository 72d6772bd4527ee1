-- Counts a request in the window KEYS[1]. ARGV: the time, the length of a window, the quota, the expiry margin; times
-- are in milliseconds. Returns whether the request is allowed, the number of counted requests, and the start of the
-- window.
local now, length, quota, margin = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local window = redis.call('HMGET', KEYS[1], 'began', 'used')
local began, used = tonumber(window[1]), tonumber(window[2])
local is_changed = false
if not began or now - began >= length then
    began, used, is_changed = now, 0, true
elseif began > now then
    -- The clock was set back, or that of another node is ahead.
    began, is_changed = now, true
end
local is_allowed = used < quota
if is_allowed then
    used, is_changed = used + 1, true
end
if is_changed then
    redis.call('HSET', KEYS[1], 'began', began, 'used', used)
    redis.call('PEXPIRE', KEYS[1], began + length - now + margin)
end
return { is_allowed and 1 or 0, used, began }
